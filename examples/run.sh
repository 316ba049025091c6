#!/bin/bash
# Runs the commands of examples/*.example and compares what they print with what stands below them.
# usage: examples/run.sh ORRERY [--update]
#
# A line "$ orrery ..." is a command; the lines after it are its output, standard error included,
# and "exit N" if it ends with anything but 0. --update writes what the program prints now.
set -u
source "$(dirname "$0")/quoted.sh"

for example in examples/*.example; do
  while IFS= read -r line; do
    case $line in
      '#'*) echo "$line" ;;
      '$ orrery '*)
        echo "$line"
        bash -c "${line#\$ }" 2>&1
        code=$?
        [[ $code -eq 0 ]] || echo "exit $code"
        echo
        ;;
    esac
  done <"$example" >"$folder/now"
  quoted "$example"
done
exit $((failures > 0))
