#!/bin/bash
# Runs a command and shows what it printed only if it fails.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1 && exit 0
status=$?
cat "$log"
exit "$status"
