#!/bin/bash
# Runs once, when the machine starts for the first time.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

"$here/install-release" /etc/quorate/coordinator.release /usr/local/bin/quorate-coordinator
"$here/install-api" /etc/quorate/api.release /opt/quorate
systemctl daemon-reload
systemctl enable --now quorate-coordinator quorate-api quorate-worker
# Last: they serve also where nobody watches them.
"$here/install-collector" /etc/quorate/collector.release /usr/local/bin/otelcol-contrib
systemctl enable --now quorate-collector
