#!/bin/bash
# Runs once, at the machine's first start.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

"$here/install-release" /etc/quorate/coordinator.release /usr/local/bin/quorate-coordinator
"$here/install-api" /etc/quorate/api.release /opt/quorate
systemctl daemon-reload
systemctl enable --now quorate-coordinator quorate-api quorate-worker
# Last, because the others serve without it.
"$here/install-collector" /etc/quorate/collector.release /usr/local/bin/otelcol-contrib
systemctl enable --now quorate-collector
