#!/bin/bash
# make-secrets FOLDER: creates the absent keys. They follow from the seed that systemd hands over, alike on all machines of
# the control plane.
set -euo pipefail
umask 077

exec "${QUORATE_PYTHON:-/opt/quorate/venv/bin/python}" -m quorate_api.main keys-init \
  --dir "$1" --seed-file "$CREDENTIALS_DIRECTORY/keys-seed"
