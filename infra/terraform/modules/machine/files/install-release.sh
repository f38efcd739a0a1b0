#!/bin/bash
# install-release RELEASE PROGRAM: installs the program that the file RELEASE names as PROGRAM, or keeps the existing one
# and fails.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

program=$2
fresh=$program.new
trap 'rm -f "$fresh"' EXIT
"$here/fetch-release" "$1" "$fresh"
chmod 0755 "$fresh"
"$fresh" --version >/dev/null || { echo 'the release does not run on this machine: not installed' >&2; exit 1; }
mv -f "$fresh" "$program"
echo "installed $("$program" --version)"
