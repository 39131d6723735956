#!/usr/bin/env bash
# Becomes the built server, with the stored settings and nothing else of the environment of whoever started it.
#   run-server.sh <settings file>
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$ROOT"
umask 077
# What settings say must never be an argument: every user of the machine can read those. So the environment is emptied first, and filled then.
if [ "${2-}" != emptied ]; then
  exec env --ignore-environment "PATH=$PATH" "HOME=${HOME:-/root}" bash "$ROOT/scripts/shell/run-server.sh" "$1" emptied
fi
# glibc would keep what a thread has freed for that thread.
export MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=131072 NODE_ENV=production PORT=9000
while IFS= read -r name; do
  # shellcheck disable=SC1090 # our own file, which only root can write
  value=$(. "$1" && printf '%s' "${!name}")
  export "$name=$value"
done < <(sed -nE 's/^([A-Z][A-Z0-9_]*)=".*"$/\1/p' "$1")
export -n PWD OLDPWD
exec "$ROOT/node_modules/.bin/node" --max-semi-space-size=2 --heap-growing-percent=50 --expose-gc --no-opt --no-maglev "$ROOT/.output/server/index.mjs"
