#!/bin/bash
# Runs the program as a user would and checks exit codes and the words on stderr.
# usage: exit_codes_test.sh ORRERY
set -u
orrery=${1:?usage: exit_codes_test.sh ORRERY}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# expect CODE WORDS ARGUMENTS...: the exit code, and WORDS within the one line on stderr.
expect() {
  local code=$1 words=$2
  shift 2
  timeout 20 "$orrery" "$@" >"$folder/out" 2>"$folder/err"
  local got=$?  # 124: it hung
  if [[ $got -ne $code ]]; then
    echo "orrery $*: exit code $got, not $code: $(cat "$folder/err")"
    failures=$((failures + 1))
  elif [[ -n $words && ($(wc -l <"$folder/err") -ne 1 || $(cat "$folder/err") != orrery:*"$words"*) ]]; then
    echo "orrery $*: stderr is not one line with '$words': $(cat "$folder/err")"
    failures=$((failures + 1))
  elif [[ -z $words && -s $folder/err ]]; then
    echo "orrery $*: said on stderr: $(cat "$folder/err")"
    failures=$((failures + 1))
  fi
}

job=(--gpu h100-sxm --gpus 8 --global-batch 64)
expect 0 "" version
expect 0 "" --help
expect 0 "" predict --help
expect 0 "" catalog
expect 0 "" catalog h100
expect 0 "" catalog h100 --json
expect 0 "" predict --model llama-3.1-8b "${job[@]}" --tp 2
expect 0 "" predict --model llama-3.1-8b "${job[@]}" --tp 2 --json
expect 0 "" predict --model llama-3.1-8b "${job[@]}" --tp 2 --explain
expect 0 "" model deepseek-v3
expect 0 "" model mamba-2.8b --json
expect 0 "" model gpt2 --seq-len 1024
expect 1 "" predict --model llama-3.1-405b "${job[@]}" --tp 8
expect 1 "" predict --model llama-3.1-405b "${job[@]}" --tp 8 --json
expect 1 "" predict --model llama-3.1-8b "${job[@]}" --tp 3 --dp 2
expect 1 "" predict --model llama-3.1-8b --gpu h100-sxm --gpus 8 --pp 8 --global-batch 16777216
expect 1 "" plan --model llama-3.1-405b "${job[@]}"
expect 2 "no verb is given"
expect 2 'did you mean "predict"?' predicr
expect 2 'did you mean "--model"?' predict --modle llama-3.1-8b
expect 2 "no model is given" predict --gpu h100
expect 2 'did you mean "h100-sxm"?' predict --model llama-3.1-8b --gpu h100-sxn
expect 2 "is not a whole number" predict --model llama-3.1-8b "${job[@]}" --tp two
expect 2 "has none; leave --ep out" predict --model llama-3.1-8b "${job[@]}" --ep 8
expect 2 "no/such/config.json" predict --model no/such/config.json "${job[@]}"
expect 2 "no-such.yaml" predict no-such.yaml
expect 2 "no-such-thing" catalog no-such-thing
expect 2 "no model is given" model
expect 2 'did you mean "deepseek-v3"?' model deepsek-v3
expect 2 "--seq-len: " model gpt2 --seq-len none
expect 2 'unknown flag "--tp"' model gpt2 --tp 2

square=(gemm --gpu h100-sxm --n 4096 --k 4096)
expect 0 "" kernel "${square[@]}" --m 4096
expect 0 "" kernel "${square[@]}" --m 4096 --power-cap 500W --json
expect 0 "" kernel "${square[@]}" --sweep m=1..32768 --out "$folder/sweep.csv"
expect 0 "" kernel softmax --gpu a100-sxm-80gb --rows 1 --cols 2147483648 --explain
expect 2 "no operator is given" kernel
expect 2 'did you mean "gemm"?' kernel gemn --gpu h100-sxm
expect 2 "the operator needs --m" kernel "${square[@]}"
expect 2 "--m: " kernel "${square[@]}" --m 0
expect 2 "--m: " kernel "${square[@]}" --m 2147483649
expect 2 "--sweep: " kernel "${square[@]}" --sweep m=1...4
expect 2 'did you mean "h100-sxm"?' kernel gemm --gpu h100-sxn --m 1 --n 1 --k 1
expect 2 "--bytes: " kernel all_reduce --gpu h100-sxm --gpus 8 --bytes -1GiB
expect 3 "cannot be written" kernel "${square[@]}" --m 1 --out "$folder/none/answer.txt"
[[ $(wc -l <"$folder/sweep.csv") -eq 17 ]] || {
  echo "a sweep over 16 values has not 17 lines"
  failures=$((failures + 1))
}

printf 'model: llama-3.1-8b\ngpu: h100-sxm\ngpus: 8\nglobal-batch: 64\ntp: 2\n' >"$folder/job.yaml"
expect 0 "" predict "$folder/job.yaml"
expect 0 "" predict "$folder/job.yaml" --tp 4
printf 'model: llama-3.1-8b\ngpus_per_node: 8\n' >"$folder/wrong.yaml"
expect 2 'did you mean "gpus-per-node"?' predict "$folder/wrong.yaml"

# The same job as flags and as a file.
"$orrery" predict "$folder/job.yaml" --json >"$folder/file.json"
"$orrery" predict --model llama-3.1-8b "${job[@]}" --tp 2 --json >"$folder/flags.json"
cmp -s "$folder/file.json" "$folder/flags.json" || {
  echo "flags and file differ"
  failures=$((failures + 1))
}

# Numbers that mean nothing.
for wrong in "--power-cap -5" "--power-cap nan" "--price -1" "--price 1e300" "--tokens 1e400" \
  "--tokens nan" "--seq-len 99999999999999999999" "--micro-batch 0" "--vpp 1000000" \
  "--oversubscription inf" "--recompute full:0" "--gpus 1048577"; do
  # shellcheck disable=SC2086
  expect 2 "${wrong%% *}: " predict --model llama-3.1-8b --gpu h100-sxm $wrong
done

# Files that are no scenario and no configuration.
repeat() { head -c "$1" /dev/zero | tr '\0' "$2"; }
truncate -s 1G "$folder/huge.json" "$folder/huge.yaml" "$folder/huge.csv"
mkdir "$folder/folder.json"
mkfifo "$folder/pipe.json"
repeat 1000000 '[' >"$folder/deep.json"
repeat 100000 - | sed 's/-/- /g' >"$folder/deep.yaml"
printf '{"model_type": "llama", "model_type": "llama"}' >"$folder/twice.json"
printf '{"model_type": "llama", "hidden_size": NaN}' >"$folder/nan.json"
printf '{"model_type": "\xff"}' >"$folder/bytes.json"
printf 'a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n' >"$folder/bomb.yaml"
for file in huge.json:"too large" folder.json:"a folder" pipe.json:"nobody writes" \
  deep.json:"nested too deep" twice.json:"appears twice" nan.json:"not valid JSON" \
  bytes.json:"not valid UTF-8"; do
  expect 2 "${file#*:}" predict --model "$folder/${file%%:*}" "${job[@]}"
done
expect 2 "too large" predict --model /dev/zero "${job[@]}"
expect 2 "too large" predict "$folder/huge.yaml"
expect 2 "nested too deep" predict "$folder/deep.yaml"
expect 2 "anchors and aliases" predict "$folder/bomb.yaml"
expect 2 "too large" validate "$folder/huge.csv"
printf 'id;gpu\n1;2\n' >"$folder/odd.csv"
expect 2 'unknown column "id;gpu"' validate "$folder/odd.csv"
printf 'id,gpu\n"1,2\n' >"$folder/open.csv"
expect 2 "never closed" validate "$folder/open.csv"

# Odd words.
expect 2 'unknown verb ""' ""
expect 2 '"\xff"' predict --model $'\xff' "${job[@]}"
expect 2 "no such file" predict $'two\nlines\e[31m.yaml'
expect 2 "no model" predict --model "$(repeat 100000 x)" "${job[@]}"

# A place that cannot be written: exit code 3, and no half of a file.
data=$folder/data
mkdir "$data"
ln -s "$(realpath "${ORRERY_DATA:-data}")"/* "$data"
rm -f "$data/evidence.json"
mkdir "$data/evidence.json"
printf 'id,gpu,gpus,model,seq_len,global_batch_seqs,precision\n' >"$folder/none.csv"
ORRERY_DATA=$data expect 3 "cannot be written" validate "$folder/none.csv" --write-evidence
[[ -z $(find "$data/" -name '.tmp*') ]] || {
  echo "half of a file was left behind"
  failures=$((failures + 1))
}
"$orrery" version >&- 2>"$folder/err"
[[ $? -eq 3 ]] || {
  echo "a closed standard output went unnoticed"
  failures=$((failures + 1))
}

# A full disk is a failure while running.
if [[ -w /dev/full ]]; then
  "$orrery" version >/dev/full 2>"$folder/err"
  [[ $? -eq 3 && $(cat "$folder/err") == "orrery: cannot write to standard output"* ]] || {
    echo "a full disk went unnoticed: $(cat "$folder/err")"
    failures=$((failures + 1))
  }
fi

exit $((failures > 0))
