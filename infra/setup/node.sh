#!/usr/bin/env bash
# Installs one folder's packages as its lock file pins them, by hash. `npm ci` is not used: it demands that the lock
# also lists the optional binaries of every other platform, and a registry mirror need not have those.
# `--no-save` leaves the lock file as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

folder=$1
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null ||
  stop 'Node.js 20 or newer is needed.' 'Debian 13: apt-get install nodejs npm; elsewhere see nodejs.org'
say "npm packages of $folder"
npm install --prefix "$folder" --no-save --no-audit --no-fund --loglevel=error
