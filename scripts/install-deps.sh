#!/bin/bash
# Installs what the build needs from Debian, as root or through sudo, and only what is missing.
# usage: install-deps.sh [--ci]    --ci adds clang, for the second opinion, the format and fuzzing
set -u
packages=(
  g++ cmake ninja-build
  nlohmann-json3-dev libyaml-cpp-dev libfmt-dev libcli11-dev libnlopt-cxx-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
)
[[ ${1:-} == --ci ]] && packages+=(clang-14 clang-format-14 libclang-rt-14-dev)

if ! command -v dpkg-query >/dev/null; then
  echo "Not a Debian system; Orrery needs what these packages hold: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null || ! { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    echo "Packages are missing and this user may not install them. Ask an administrator to run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Installing ${missing[*]}"
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
# The package lists of a fresh machine are empty or old.
install || { "${as_root[@]}" apt-get update -q >"$log" 2>&1 && install; } || {
  tail -20 "$log" >&2
  echo "The installation failed. By hand:" >&2
  echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
}
