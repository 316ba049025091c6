#!/bin/bash
# Checks that floors.sh accepts a sound tree and refuses each kind of unsound one, in its words.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

fresh() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{core,units,plan,cost,exec,cli}
  echo '#include <nlohmann/json.hpp>' >"$tree/core/json.cpp"
  echo '#include "core/json.h"' >"$tree/units/text.cpp"
  printf '#include "units/text.h"\n#include "plan/b.h"\n#include <vector>\n' >"$tree/plan/a.cpp"
}

refuses() {  # WHAT WORDS
  local output
  if output=$("$here/floors.sh" "$tree"); then
    echo "accepted: $1"; failures=$((failures + 1))
  elif [[ $output != *"$2"* ]]; then
    echo "wrong words for $1: $output"; failures=$((failures + 1))
  fi
}

fresh
"$here/floors.sh" "$tree" || { echo "refused: a sound tree"; failures=$((failures + 1)); }

fresh; echo '#include "plan/a.h"' >"$tree/core/bad.h"
refuses "an include that runs uphill" "core/bad.h:1: core (floor 1) must not include plan/a.h"
fresh; echo '  #  include "cost/a.h"' >"$tree/exec/bad.cpp"
refuses "an include of the same floor" "exec (floor 7) must not include cost/a.h (floor 7)"
fresh; echo '#include "a.h"' >"$tree/plan/bad.cpp"
refuses "an include without a room" '"a.h" must start with the name of a room'
fresh; mkdir "$tree/attic"
refuses "a room that is not in the table" "src/attic/ is no known room"
fresh; echo '#include <nlohmann/json_fwd.hpp>' >"$tree/plan/bad.cpp"
refuses "a heavy header in two files" "nlohmann/ is included by 2 files"
fresh; echo '#include "CLI/CLI.hpp"' >"$tree/cli/bad.h"
refuses "a heavy header in a header" "CLI/ is included by a header"

[[ $failures -eq 0 ]]
