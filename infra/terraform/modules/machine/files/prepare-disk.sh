#!/bin/bash
# prepare-disk DEVICE FOLDER: waits for the device, formats it if it is blank, and mounts it.
# Clouds may attach it after the machine's start. Data on it is never overwritten: a replacement machine continues with
# the journal of the replaced one.
set -euo pipefail

device=$1 folder=$2 deadline=$((SECONDS + ${DISK_WAIT_S:-600}))
until [ -b "$device" ]; do
  [ "$SECONDS" -lt "$deadline" ] || { echo "$device did not appear" >&2; exit 1; }
  sleep 1
done
# blkid exits with 2 if it recognises nothing on the device, with 0 if it does. Other codes are failures.
found=0
type=$(blkid --probe --match-tag TYPE --output value "$device") || found=$?
case $found in
0) [ "$type" = ext4 ] || { echo "$device holds $type, not ext4: left alone" >&2; exit 1; } ;;
2) mkfs.ext4 -q -L quorate "$device" ;;
*) echo "blkid cannot read $device" >&2; exit 1 ;;
esac
mkdir -p "$folder"
mountpoint -q "$folder" || mount -o noatime "$device" "$folder"
