#!/usr/bin/env bash
# Installs packages of the system, with root or sudo. Without either it prints the command to run and continues, so that
# only their users fail.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); } # command, Debian package
need cc build-essential     # Rust links with it
need chromium chromium      # the portal's tests in a real browser
need ip iproute2            # network faults in tests
need nft nftables           # partitions in tests
need mount mount            # small disks in tests
need setpriv util-linux     # PostgreSQL refuses to run as root
# Libraries, not commands: one-sided writes, and clock steps in tests.
compgen -G '/usr/lib*/*/libfabric.so.1' >/dev/null || compgen -G '/usr/lib*/libfabric.so.1' >/dev/null || missing+=(libfabric1)
compgen -G '/usr/lib*/*/faketime/libfaketimeMT.so.1' >/dev/null ||
  compgen -G '/usr/lib*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(libfaketime)
[ ${#missing[@]} -gt 0 ] || exit 0

install() { # prefix…
  say "system packages: ${missing[*]}"
  "$@" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "$@" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

if command -v apt-get >/dev/null; then
  if [ "$(id -u)" -eq 0 ]; then
    install env && exit 0
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    install sudo env && exit 0
  fi
fi
cat >&2 <<TEXT

Some system packages are missing, and there is no root or sudo here to install them. Please run:
  apt-get install --no-install-recommends ${missing[*]}
Without them these fail with that reason: chromium – the portal's browser tests; iproute2, nftables,
libfaketime – faults of networks and clocks (make chaos); libfabric1 – one-sided writes; build-essential – the Rust build; util-linux – PostgreSQL when started by root.

TEXT
