#!/bin/bash
# preflight PROGRAM FOLDER tcp|rdma: checks the server's preconditions as the server's user.
set -euo pipefail

program=$1 folder=$2 network=$3
"$program" --version
probe=$folder/.preflight
trap 'rm -f "$probe"' EXIT
# Write as the journal does: past the page cache, and synced.
dd if=/dev/zero of="$probe" bs=4096 count=1 oflag=direct conv=fsync status=none ||
  { echo "$folder takes no direct writes" >&2; exit 1; }
if [ "$network" = rdma ]; then
  devices=(/sys/class/infiniband/*)
  if [ -e "${devices[0]}" ]; then
    echo "RDMA devices: ${devices[*]##*/}"
  else
    echo 'this machine was to have an RDMA device and has none; the server runs over TCP' >&2
  fi
fi
