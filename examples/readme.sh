#!/bin/bash
# Checks that the outputs quoted in the READMEs are what the program prints.
# usage: examples/readme.sh ORRERY [--update]
#
# A block runs from "<!-- run: COMMAND -->" to "<!-- /run -->"; the fenced text between is the
# command's output. --update writes what the program prints now.
set -u
source "$(dirname "$0")/quoted.sh"

for readme in README.md README.zh-CN.md; do
  inside=0
  while IFS= read -r line; do
    if [[ $line == '<!-- run: '*' -->' ]]; then
      command=${line#<!-- run: }
      printf '%s\n```\n' "$line"
      bash -c "${command% -->}" 2>&1
      printf '```\n'
      inside=1
    elif [[ $line == '<!-- /run -->' ]]; then
      inside=0
    fi
    [[ $inside -eq 1 ]] || printf '%s\n' "$line"
  done <"$readme" >"$folder/now"
  quoted "$readme"
done
exit $((failures > 0))
