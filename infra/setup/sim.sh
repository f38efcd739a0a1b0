#!/usr/bin/env bash
# Runs the simulator over many seeds: SEEDS FIRST PROFILE. With `planted`, in a build that has planted bugs, it catches each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

command -v cargo >/dev/null || stop 'Rust is needed and cargo was not found.' 'See the Rust project’s site: rustup.rs'
say 'simulator (cargo)'
# The sources that the figures speak for, as they are before the build.
subject=simulator
[ "$1" != planted ] || subject=planted-bugs
export QUORATE_SOURCE="${QUORATE_SOURCE:-$(build/venv/bin/quorate-evidence source "$subject")}"
# Debug assertions hold in both, and poisoned batches can be planted. Many seeds repay the longer build of `simulated`.
profile=checked
[ "$1" = planted ] || [ "$1" -lt 20000 ] || profile=simulated
cargo build --profile "$profile" --locked --quiet --manifest-path services/Cargo.toml -p quorate-sim
simulator="$CARGO_TARGET_DIR/$profile/quorate-sim"
# Freed memory stays with the process: giving it back and taking it again is a tenth of the time.
export MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_TOP_PAD_=67108864
if [ "$1" = planted ]; then
  QUORUM_FIGURES="$PWD/build/figures" cargo test --profile "$profile" --locked --quiet \
    --manifest-path services/Cargo.toml -p quorate-quorum --test seeds each_planted_bug_is_caught -- --nocapture
  exec "$simulator" planted --figures build/figures
fi
command="make sim SEEDS=$1 FIRST=$2"
[ "$3" = any ] || command+=" PROFILE=$3"
exec "$simulator" run --seeds "$1" --first "$2" --profile "$3" --figures build/figures --command "$command"
