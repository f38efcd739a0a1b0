# Shared by the set-up scripts: their output.
say() { printf '  %s\n' "$*"; }
stop() {
  printf '\n%s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}
