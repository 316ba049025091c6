#!/bin/bash
# Builds the fuzz targets with clang and runs each, or those named, for FUZZ_SECONDS (60).
# usage: fuzz.sh [NAME...]
set -eu
cd "$(dirname "$0")/.."
scripts/quietly.sh cmake --preset fuzz
scripts/quietly.sh cmake --build --preset fuzz --target fuzzers
names=("$@")
[[ $# -gt 0 ]] || mapfile -t names < <(cd build-fuzz/bin && ls -d -- *_fuzz | sed 's/_fuzz$//')
for name in "${names[@]}"; do
  corpus=build-fuzz/corpus/$name
  seeds=("fuzz/seeds/$name")
  # The catalog's own files are the best examples of themselves.
  [[ $name != entry ]] || seeds=(data/gpus data/nodes data/fabrics data/frameworks data/kernels data/power)
  [[ $name != config ]] || seeds+=(data/models)
  mkdir -p "$corpus"
  echo "== $name"
  "build-fuzz/bin/${name}_fuzz" -max_total_time="${FUZZ_SECONDS:-60}" -max_len=8192 -timeout=10 \
    -verbosity=0 -print_funcs=0 -print_final_stats=1 -artifact_prefix="build-fuzz/" "$corpus" "${seeds[@]}"
done
