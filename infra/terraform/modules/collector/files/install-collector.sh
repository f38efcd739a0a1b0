#!/bin/bash
# install-collector RELEASE PROGRAM [FOLDER]: installs the program of the archive that the file RELEASE names as PROGRAM,
# if it accepts the configuration in FOLDER (/etc/quorate). Else it keeps the existing program and fails.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

program=$2 folder=${3:-/etc/quorate}
archive=$program.tar.gz fresh=$program.new
trap 'rm -f "$archive" "$fresh"' EXIT
"$here/fetch-release" "$1" "$archive"
tar --extract --gzip --to-stdout --file "$archive" otelcol-contrib >"$fresh"
chmod 0755 "$fresh"
set -a
# shellcheck source=/dev/null
. "$folder/collector.env"
"$fresh" validate --config "$folder/collector.yaml" ||
  { echo 'the collector does not run on this machine, or refuses its configuration: not installed' >&2; exit 1; }
mv -f "$fresh" "$program"
echo "installed $("$program" --version)"
