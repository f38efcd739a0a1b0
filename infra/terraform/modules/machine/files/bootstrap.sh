#!/bin/bash
# Runs once, at the machine's first start.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

"$here/install-release" /etc/quorate/release /usr/local/bin/quorate-replica
systemctl daemon-reload
systemctl enable --now quorate-replica.service
# Last, because a server serves without it.
if [ -e /etc/quorate/collector.release ]; then
  "$here/install-collector" /etc/quorate/collector.release /usr/local/bin/otelcol-contrib
  systemctl enable --now quorate-collector.service
fi
