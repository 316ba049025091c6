# Shared by run.sh and readme.sh: `orrery` on the PATH is the program under test, and a folder for
# what it prints now. Sourced, with the program as $1.
program=$(realpath "${1:?usage: $0 ORRERY [--update]}")
update=${2:-}
cd "$(dirname "$0")/.." || exit 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$program" "$folder/orrery"
export PATH="$folder:$PATH" NO_COLOR=1
failures=0

# quoted FILE: what it quotes is what "$folder/now" holds, or becomes it.
quoted() {
  if [[ $update == --update ]]; then
    cp "$folder/now" "$1"
  elif ! diff -u "$1" "$folder/now"; then
    echo "$1: the output changed; if it should, run $0 ORRERY --update"
    failures=$((failures + 1))
  fi
}
