#!/usr/bin/env bash
# Makes the Python environment of the whole project: build/venv with everything pinned by hash,
# and the project's own packages installed editable. Idempotent.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

venv=build/venv
requirements=(-r infra/setup/python.txt)
packages=(services/{api,prober} sdk/python infra/{local,observability,checks} loadtest/{harness,demo,bench,claims,sla,accounts,scale,profile,papers,peers,chaos,evidence})

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.11 python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  stop 'Python 3.11 is needed and was not found.' \
    'Debian 12: apt-get install python3 python3-venv' 'Elsewhere: make … PYTHON=/path/to/python3.11'
}

find_uv() {
  if command -v uv >/dev/null && uv --version >/dev/null 2>&1; then
    command -v uv
    return
  fi
  if [ ! -x build/uv/bin/uv ]; then
    say 'uv is not installed: fetching the pinned one into build/uv' >&2
    "$python" -m venv build/uv >/dev/null 2>&1 ||
      stop 'Python cannot make virtual environments here.' 'Debian: apt-get install python3-venv'
    build/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r infra/setup/uv.txt >&2
  fi
  printf '%s\n' "$PWD/build/uv/bin/uv"
}

python=$(find_python)
uv=$(find_uv)
export UV_NO_PROGRESS=1 UV_PYTHON_DOWNLOADS=never
say "Python environment in $venv"
# An environment does not run after its folder was moved or its interpreter removed.
"$venv/bin/python" -c '' 2>/dev/null && [ "$("$venv/bin/python" -c 'import sys; print(sys.prefix)')" = "$PWD/$venv" ] ||
  "$uv" venv --quiet --clear --python "$python" "$venv"
"$uv" pip install --quiet --python "$venv/bin/python" --require-hashes "${requirements[@]}"
present=()
for package in "${packages[@]}"; do
  if [ -f "$package/pyproject.toml" ]; then present+=(-e "$package"); else say "$package is not in this checkout"; fi
done
"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation "${present[@]}"
