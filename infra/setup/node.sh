#!/usr/bin/env bash
# npm ci in one folder. Its lock file pins everything by hash.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

folder=$1
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null ||
  stop 'Node.js 20 or newer is needed.' 'Debian 13: apt-get install nodejs npm; elsewhere see nodejs.org'
say "npm packages of $folder"
npm ci --prefix "$folder" --no-audit --no-fund --loglevel=error
