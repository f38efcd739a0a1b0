#!/usr/bin/env bash
# Builds the servers, the load driver and quorate-planner, and copies them to build/bin.
# The cargo target folder may be shared between clones; the lock keeps one clone's copy from
# picking up the other's binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

command -v cargo >/dev/null || stop 'Rust is needed and cargo was not found.' 'See the Rust project’s site: rustup.rs'
say "servers and load driver (cargo, target folder $CARGO_TARGET_DIR)"
mkdir -p "$CARGO_TARGET_DIR" build/bin
exec 9>"$CARGO_TARGET_DIR/.quorate-copy.lock"
flock 9
progress=(--quiet)
[ ! -t 1 ] || progress=()
# By name: the simulator's planted bugs must never be compiled into a server.
cargo build --release --locked --manifest-path services/Cargo.toml --bins \
  -p quorate-replica -p quorate-coordinator -p quorate-load -p quorate-planner "${progress[@]}"
for name in quorate-replica quorate-coordinator quorate-load quorate-planner; do
  built="$CARGO_TARGET_DIR/release/$name"
  [ -f "$built" ] || { say "$name is not in this checkout"; continue; }
  # By a new file: a running server keeps the old one.
  cmp -s "$built" "build/bin/$name" || { cp "$built" "build/bin/.$name" && mv -f "build/bin/.$name" "build/bin/$name"; }
done
