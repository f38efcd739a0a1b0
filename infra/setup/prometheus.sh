#!/usr/bin/env bash
# Finds Prometheus and promtool for `make up OBSERVE=1` and for the tests of alerts: in PATH, else in Debian's package,
# unpacked into build/prometheus. An installed package would start a server of its own on all addresses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

target=build/prometheus
runs() { "$1/promtool" --version >/dev/null 2>&1 && "$1/prometheus" --version >/dev/null 2>&1; }
if runs "$target/usr/bin" || { command -v prometheus >/dev/null && command -v promtool >/dev/null; }; then exit 0; fi

missing() {
  cat >&2 <<TEXT

Prometheus is not here and could not be fetched: $1
Please install it so that prometheus and promtool are in PATH; Debian: apt-get install --no-install-recommends prometheus
Without it these fail with that reason: make up OBSERVE=1, and the tests of alerts.

TEXT
  [ "${REQUIRED:-}" = 1 ] && exit 1
  exit 0
}

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || missing 'this is no Debian.'
say 'prometheus (from the Debian package, into build/)'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
fetch() { (cd "$folder" && apt-get download -qq prometheus) >"$folder/log" 2>&1; }
# Fetching needs no root, only recent lists of packages.
if ! fetch; then
  if [ "$(id -u)" -eq 0 ]; then
    apt-get update -qq >"$folder/log" 2>&1 || true
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo apt-get update -qq >"$folder/log" 2>&1 || true
  fi
  fetch || missing "$(tail -1 "$folder/log")"
fi
rm -rf "$target.new"
dpkg-deb -x "$folder"/prometheus_*.deb "$target.new"
rm -rf "$target" && mv "$target.new" "$target"
runs "$target/usr/bin" || missing 'the fetched one does not run here.'
