#!/bin/bash
# Builds the fuzz targets with clang and runs each for FUZZ_SECONDS (60).
set -eu
cd "$(dirname "$0")/.."
scripts/quietly.sh cmake --preset fuzz
scripts/quietly.sh cmake --build --preset fuzz --target fuzzers
for target in build-fuzz/bin/*_fuzz; do
  name=$(basename "$target")
  mkdir -p "build-fuzz/corpus/$name"
  seeds=fuzz/seeds/${name%_fuzz}
  echo "== $name"
  "$target" -max_total_time="${FUZZ_SECONDS:-60}" -max_len=4096 -timeout=10 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="build-fuzz/" \
    "build-fuzz/corpus/$name" $([[ -d $seeds ]] && echo "$seeds")
done
