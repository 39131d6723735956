#!/usr/bin/env bash
# Becomes the built server, with the stored settings and nothing else of the environment of whoever started it.
#   run-server.sh <settings file>
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$ROOT"
umask 077
settings=()
while IFS= read -r name; do
  # shellcheck disable=SC1090 # our own file, which only root can write
  settings+=("$name=$(. "$1" && printf '%s' "${!name}")")
done < <(sed -nE 's/^([A-Z][A-Z0-9_]*)=".*"$/\1/p' "$1")
# glibc would keep what a thread has freed for that thread.
exec env --ignore-environment MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=131072 "PATH=$PATH" "HOME=${HOME:-/root}" NODE_ENV=production PORT=9000 "${settings[@]}" \
  "$ROOT/node_modules/.bin/node" --max-semi-space-size=2 --heap-growing-percent=50 --expose-gc --no-opt --no-maglev "$ROOT/.output/server/index.mjs"
