#!/bin/bash
# make-secrets FOLDER: creates the absent keys. They leave this machine's disk only in backups.
set -euo pipefail
umask 077

mkdir -p "$1"
if [ ! -s "$1/coordinator-admin-token" ]; then
  openssl rand -hex 32 >"$1/.coordinator-admin-token"
  mv "$1/.coordinator-admin-token" "$1/coordinator-admin-token"
fi
exec "${QUORATE_PYTHON:-/opt/quorate/venv/bin/python}" -m quorate_api.main keys-init --dir "$1"
