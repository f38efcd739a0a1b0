#!/usr/bin/env bash
# Makes the Python environment of infra/pulumi: build/venv-pulumi with everything pinned by hash, and the project's
# packages editable. It is apart from build/venv, because Pulumi wants an older protobuf. Idempotent.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

venv=build/venv-pulumi
uv=$(command -v uv || printf '%s\n' "$PWD/build/uv/bin/uv") # python.sh has fetched it, if needed
export UV_NO_PROGRESS=1 UV_PYTHON_DOWNLOADS=never
say "Python environment in $venv"
[ "$("$venv/bin/python" -c 'import sys; print(sys.prefix)' 2>/dev/null)" = "$PWD/$venv" ] ||
  "$uv" venv --quiet --clear --python build/venv/bin/python "$venv"
"$uv" pip install --quiet --python "$venv/bin/python" --require-hashes -r infra/setup/pulumi.txt
"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e sdk/python -e infra/pulumi
