#!/bin/bash
# Checks that the rooms under a source tree include only rooms of lower floors, by full path, and
# that each header that is slow to compile is included by one .cpp file.
# usage: floors.sh SRC
set -u
cd "${1:?usage: floors.sh SRC}" || exit 2

declare -A floor=(
  [core]=1 [units]=2 [numerics]=2 [catalog]=3 [model]=4 [mig]=4 [plan]=5 [cost]=6 [exec]=6 [sim]=7
  [serve]=8 [twin]=9 [search]=10 [report]=10 [validate]=10 [cli]=11 [python]=11
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
