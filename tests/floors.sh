#!/bin/bash
# Checks that the rooms under a source tree include only rooms of lower floors, by full path, and
# that each header that is slow to compile is included by one .cpp file.
# usage: floors.sh SRC
set -u
cd "${1:?usage: floors.sh SRC}" || exit 2

declare -A floor=(
  [core]=1 [units]=2 [numerics]=2 [catalog]=3 [physics]=4 [model]=5 [mig]=5 [tables]=5 [plan]=6
  [fit]=6 [cost]=7 [exec]=7 [sim]=8 [serve]=9 [twin]=10 [search]=11 [report]=11 [validate]=11
  [cli]=12 [python]=12
)
heavy=(CLI/ nlohmann/ yaml-cpp/)

problems=0
problem() { echo "floors: $*"; problems=$((problems + 1)); }

for folder in */; do
  [[ -n ${floor[${folder%/}]:-} ]] || problem "src/$folder is no known room"
done

while IFS=: read -r file line text; do
  from=${file%%/*}
  target=$(sed -E 's/^[^"]*"([^"]*)".*/\1/' <<<"$text")
  to=${target%%/*}
  if [[ $target != */* || -z ${floor[$to]:-} ]]; then
    problem "$file:$line: \"$target\" must start with the name of a room"
  elif [[ $from != "$to" && ${floor[$to]} -ge ${floor[$from]:-0} ]]; then
    problem "$file:$line: $from (floor ${floor[$from]:-0}) must not include $target" \
            "(floor ${floor[$to]})"
  fi
done < <(grep -rnE --include='*.h' --include='*.cpp' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' . |
         sed 's|^\./||')

for header in "${heavy[@]}"; do
  mapfile -t users < <(grep -rlE --include='*.h' --include='*.cpp' \
    "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$header" . | sort)
  [[ ${#users[@]} -le 1 ]] || problem "$header is included by ${#users[@]} files: ${users[*]}"
  for user in "${users[@]}"; do
    [[ $user == *.cpp ]] || problem "$header is included by a header: $user"
  done
done

[[ $problems -eq 0 ]] || exit 1
