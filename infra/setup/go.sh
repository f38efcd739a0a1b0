#!/usr/bin/env bash
# Builds the checker of recorded histories, Terraform's providers and Stripe's published mock. Their modules are verified by the sums in go.sum.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

command -v go >/dev/null || stop 'Go 1.25.8 or newer is needed and was not found.' \
  'Debian: apt-get install golang-go (from backports where it is older); elsewhere see go.dev'
say 'history checker, Terraform providers and stripe-mock (go)'
mkdir -p build/bin
(cd loadtest/chaos/check && go build -o ../../../build/bin/.quorate-chaos-check .)
mv -f build/bin/.quorate-chaos-check build/bin/quorate-chaos-check
for provider in quorate quorate-local; do
  folder=infra/terraform/provider${provider#quorate}
  (cd "$folder" && go build -o "../../../build/bin/.terraform-provider-$provider" .)
  mv -f "build/bin/.terraform-provider-$provider" "build/bin/terraform-provider-$provider"
done
# Tests of payments run against it.
(cd services/api/stripe-mock && go build -o ../../../build/bin/.stripe-mock github.com/stripe/stripe-mock)
mv -f build/bin/.stripe-mock build/bin/stripe-mock
