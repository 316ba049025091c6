#!/bin/bash
# Checks that the outputs quoted in the READMEs are what the program prints.
# usage: examples/readme.sh ORRERY [--update]
#
# A block runs from "<!-- run: COMMAND -->" to "<!-- /run -->"; the fenced text between is the
# command's output. --update writes what the program prints now.
set -u
program=$(realpath "${1:?usage: examples/readme.sh ORRERY [--update]}")
update=${2:-}
cd "$(dirname "$0")/.." || exit 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$program" "$folder/orrery"
export PATH="$folder:$PATH" NO_COLOR=1

failures=0
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
  if [[ $update == --update ]]; then
    cp "$folder/now" "$readme"
  elif ! diff -u "$readme" "$folder/now"; then
    echo "$readme: the output changed; if it should, run examples/readme.sh ORRERY --update"
    failures=$((failures + 1))
  fi
done
exit $((failures > 0))
