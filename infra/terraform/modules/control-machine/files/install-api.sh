#!/bin/bash
# install-api RELEASE FOLDER: unpacks the archive that the file RELEASE names into FOLDER. Creates a Python environment
# there from its requirements.txt, by hash.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

folder=$2
mkdir -p "$folder"
"$here/fetch-release" "$1" "$folder/quorate-api.tar.gz"
tar --extract --gzip --no-same-owner --file "$folder/quorate-api.tar.gz" --directory "$folder"
rm "$folder/quorate-api.tar.gz"
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
  --only-binary :all: --require-hashes --requirement "$folder/api/requirements.txt"
PYTHONPATH=$folder/api/src "$folder/venv/bin/python" -m quorate_api.main --help >/dev/null
