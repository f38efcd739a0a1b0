#!/bin/bash
# fetch-release RELEASE FILE: fetches a release to FILE, or leaves no file there and fails. The file RELEASE has its
# address on the first line, its SHA-256 on the second.
set -euo pipefail

{ read -r url; read -r sha256; } <"$1"
file=$2
trap 'rm -f "$file"' ERR

# The address goes to standard input: it may be signed, and every user sees command lines.
printf 'url = "%s"\n' "$url" |
  curl --config - --proto '=https' --fail --silent --show-error --location --proto-redir '=https' \
    --retry "${INSTALL_RETRIES:-8}" --retry-all-errors --connect-timeout 20 --max-time 600 --output "$file"
found=$(sha256sum "$file" | cut -d' ' -f1)
if [ "$found" != "$sha256" ]; then
  echo "the release has the SHA-256 $found, and $sha256 was asked for: not installed" >&2
  rm -f "$file"
  exit 1
fi
