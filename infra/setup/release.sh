#!/usr/bin/env bash
# Packs the files that machines install at their first start (docs/operating/terraform-modules.md) into build/release:
# the servers' programs, the API with its portal, and their SHA-256 sums for Terraform's configurations.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

say 'the files that machines install, in build/release'
rm -rf build/release
mkdir -p build/release/pack/api
binaries=${QUORATE_BINARIES:-build/bin}
cp -L "$binaries/quorate-replica" "$binaries/quorate-coordinator" build/release/
cp -r services/api/src services/api/requirements.txt build/release/pack/api/
cp -r sdk/python/src/quorate build/release/pack/api/src/ # the API looks into logs with it
cp -r migrations build/release/pack/
cp -r portal/dist build/release/pack/portal
find build/release/pack -name __pycache__ -prune -exec rm -r {} +
find build/release/pack -name '*.egg-info' -prune -exec rm -r {} +
# The same content on every machine and at any time.
tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go=rX --directory build/release/pack . |
  gzip --no-name >build/release/quorate-api.tar.gz
rm -r build/release/pack
(cd build/release && sha256sum quorate-* >SHA256SUMS && cat SHA256SUMS)
