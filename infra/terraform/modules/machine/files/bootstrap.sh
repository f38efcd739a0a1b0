#!/bin/bash
# Runs once, when the machine starts for the first time.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

"$here/install-release" /etc/quorate/release /usr/local/bin/quorate-replica
systemctl daemon-reload
systemctl enable --now quorate-replica.service
# Last: a server serves also where nobody watches it.
if [ -e /etc/quorate/collector.release ]; then
  "$here/install-collector" /etc/quorate/collector.release /usr/local/bin/otelcol-contrib
  systemctl enable --now quorate-collector.service
fi
