#!/usr/bin/env bash
# Builds the servers, the load driver and quorate-planner. `release`, for people: into build/bin. `checked`, for tests:
# with debug assertions, and all Rust tests in the same build, into build/checked.
# The cargo target folder may be shared between clones; the lock keeps one clone's copy from
# picking up the other's binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. infra/setup/say.sh

command -v cargo >/dev/null || stop 'Rust is needed and cargo was not found.' 'See the Rust project’s site: rustup.rs'
binaries=(quorate-replica quorate-coordinator quorate-load quorate-planner)
if [ "$1" = checked ]; then
  say "servers and tests in Rust (cargo, target folder $CARGO_TARGET_DIR)"
  folder=build/checked
  # As infra/checks/quorate_checks/rust_build.py has it: lints and tests find everything done.
  what=(--workspace --bins --tests)
  command -v clippy-driver >/dev/null || stop 'Rust’s lints are needed and clippy-driver was not found.' 'Try: rustup component add clippy'
  export RUSTC_WORKSPACE_WRAPPER=clippy-driver
else
  say "servers and load driver (cargo, target folder $CARGO_TARGET_DIR)"
  folder=build/bin
  what=(--bins "${binaries[@]/#/--package=}")
fi
mkdir -p "$CARGO_TARGET_DIR" "$folder"
exec 9>"$CARGO_TARGET_DIR/.quorate-copy.lock"
flock 9
progress=(--quiet)
[ ! -t 1 ] || progress=()
cargo build --profile "$1" --locked --manifest-path services/Cargo.toml "${what[@]}" "${progress[@]}"
for name in "${binaries[@]}"; do
  built="$CARGO_TARGET_DIR/$1/$name"
  [ -f "$built" ] || { say "$name is not in this checkout"; continue; }
  # By a new file: a running server keeps the old one.
  cmp -s "$built" "$folder/$name" || { cp "$built" "$folder/.$name" && mv -f "$folder/.$name" "$folder/$name"; }
done
