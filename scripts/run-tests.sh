#!/bin/bash
# Runs ctest in a build folder and closes with "N passed, N failed", counting the cases inside each
# GoogleTest binary. A binary that fails without a failed case (a crash, a timeout) counts as one.
# usage: run-tests.sh BUILD [ctest arguments]
set -u
build=$(cd "${1:?usage: run-tests.sh BUILD}" && pwd) || exit 2
shift
rm -rf "$build/test-results"
mkdir -p "$build/test-results"

ctest --test-dir "$build" --output-on-failure --output-junit "$build/test-results/ctest.junit" \
  -j "$(nproc)" "$@"
status=$?

attribute() { sed -nE "s/.* $1=\"([^\"]*)\".*/\1/p" <<<"$2"; }

passed=0
failed=0
while read -r line; do
  name=$(attribute name "$line")
  outcome=$(attribute status "$line")
  results=$build/test-results/$name.xml
  if [[ -s $results ]]; then
    totals=$(grep -m1 '<testsuites ' "$results")
    bad=$(($(attribute failures "$totals") + $(attribute errors "$totals")))
    [[ $outcome == run || $bad -gt 0 ]] || bad=1
    skipped=$(($(attribute disabled "$totals") + $(grep -c 'result="skipped"' "$results")))
    good=$(($(attribute tests "$totals") - bad - skipped))
    passed=$((passed + (good > 0 ? good : 0)))
    failed=$((failed + bad))
  elif [[ $outcome == run ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done < <(grep '<testcase ' "$build/test-results/ctest.junit")

# Nothing found is no success.
[[ $((passed + failed)) -gt 0 ]] || failed=1
echo "$passed passed, $failed failed"
[[ $status -eq 0 && $failed -eq 0 ]]
