#!/bin/bash
# Runs a command and shows what it printed only if it fails; on a terminal, as it goes.
if [[ -t 1 ]]; then exec "$@"; fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1 && exit 0
status=$?
cat "$log"
exit "$status"
