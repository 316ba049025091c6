#!/bin/bash
# Checks the closing line of run-tests.sh on a stand-in for ctest that leaves known results.
set -u
script=$(cd "$(dirname "$0")/../scripts" && pwd)/run-tests.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/build"
cat >"$work/bin/ctest" <<'CTEST'
#!/bin/bash
cp "$CASES"/* "$CASES/../build/test-results/"
exit "$CTEST_STATUS"
CTEST
chmod +x "$work/bin/ctest"

fresh() { rm -rf "$work/cases"; mkdir "$work/cases"; }
ran() { echo "<testcase name=\"$1\" classname=\"$1\" time=\"1\" status=\"$2\">" >>"$work/cases/ctest.junit"; }
cases() { echo "<testsuites tests=\"$2\" failures=\"$3\" disabled=\"0\" errors=\"0\" time=\"1\">" >"$work/cases/$1.xml"; }

failures=0
expect() {  # CTEST_STATUS EXIT LINE
  local output code
  output=$(CASES=$work/cases CTEST_STATUS=$1 PATH=$work/bin:$PATH "$script" "$work/build" | tail -1)
  CASES=$work/cases CTEST_STATUS=$1 PATH=$work/bin:$PATH "$script" "$work/build" >/dev/null
  code=$?
  if [[ $output != "$3" || $code -ne $2 ]]; then
    echo "expected \"$3\" and exit $2, got \"$output\" and exit $code"
    failures=$((failures + 1))
  fi
}

fresh; ran core_test run; cases core_test 54 0; ran floors run
expect 0 0 "55 passed, 0 failed"
fresh; ran core_test fail; cases core_test 54 3; ran floors fail
expect 8 1 "51 passed, 4 failed"
fresh; ran core_test fail; cases core_test 54 0
expect 8 1 "53 passed, 1 failed"
fresh; ran core_test fail; ran units_test run; cases units_test 2 0
expect 8 1 "2 passed, 1 failed"
fresh; touch "$work/cases/ctest.junit"
expect 0 1 "0 passed, 1 failed"

[[ $failures -eq 0 ]]
