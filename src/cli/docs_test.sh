#!/bin/bash
# Checks that what the program knows is what the documents list: flags, families and JSON keys.
# usage: docs_test.sh ORRERY, in the repository's root
set -u
orrery=${1:?usage: docs_test.sh ORRERY}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# listed WORD FILE...: every file has the word.
listed() {
  local word=$1
  shift
  for file; do
    grep -qwF -- "$word" "$file" && continue
    echo "$file does not mention $word"
    failures=$((failures + 1))
  done
}

for key in $("$orrery" predict --help | grep -oP '^  --\K[a-z0-9-]+' | grep -vxE 'json|explain|help'); do
  listed "\`$key\`" docs/formats.md
done

families=$("$orrery" catalog models --json | sed -n '/"families"/,/]/p' | grep -oP '^ *"\K[^"]+(?=",?$)')
[[ -n $families ]] || { echo "the catalog lists no families"; failures=$((failures + 1)); }
for family in $families; do
  listed "$family" docs/formats.md
done

echo 'id,gpu,gpus,model,layers,hidden,heads,seq_len,global_batch_seqs,precision,tokens_per_s_per_gpu
a-1,l4,1,tiny,2,256,2,1024,8,bf16,9' >"$folder/rows.csv"
{
  "$orrery" validate "$folder/rows.csv" --json
  "$orrery" predict --model gpt2 --gpu l4 --json --explain
  "$orrery" model gemma-3-27b --json
  "$orrery" model deepseek-v3 --json
  "$orrery" kernel gemm --gpu l4 --m 64 --n 64 --k 64 --json --explain
  "$orrery" kernel all_reduce --gpu h100-sxm --gpus 8 --bytes 1MiB --json
} | grep -oP '^ *"\K[a-z_]+(?=":)' | sort -u >"$folder/keys"
while read -r key; do
  listed "$key" docs/formats.md
done <"$folder/keys"

exit $((failures > 0))
