#!/bin/bash
# Runs the commands of examples/*.example and compares what they print with what stands below them.
# usage: examples/run.sh ORRERY [--update]
#
# A line "$ orrery ..." is a command; the lines after it are its output, standard error included,
# and "exit N" if it ends with anything but 0. --update writes what the program prints now.
set -u
program=$(realpath "${1:?usage: examples/run.sh ORRERY [--update]}")
update=${2:-}
cd "$(dirname "$0")/.." || exit 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$program" "$folder/orrery"
export PATH="$folder:$PATH" NO_COLOR=1

failures=0
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
  if [[ $update == --update ]]; then
    cp "$folder/now" "$example"
  elif ! diff -u "$example" "$folder/now"; then
    echo "$example: the output changed; if it should, run examples/run.sh ORRERY --update"
    failures=$((failures + 1))
  fi
done
exit $((failures > 0))
