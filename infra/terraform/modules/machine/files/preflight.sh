#!/bin/bash
# preflight PROGRAM FOLDER [PROVIDER HOST]: checks the server's preconditions as the server's user. With libfabric's provider
# it tests one-sided writes; the server tells the coordinator of the result.
set -euo pipefail

program=$1 folder=$2 provider=${3:-} host=${4:-}
"$program" --version
probe=$folder/.preflight
trap 'rm -f "$probe"' EXIT
# Write as the journal does: past the page cache, and synced.
dd if=/dev/zero of="$probe" bs=4096 count=1 oflag=direct conv=fsync status=none ||
  { echo "$folder takes no direct writes" >&2; exit 1; }
if [ -n "$provider" ]; then
  # A server without a result uses TCP.
  rm -f "$folder/ofi-selftest.json"
  "$program" selftest ofi --provider "$provider" --host "$host" --out "$folder/ofi-selftest.json" || true
fi
