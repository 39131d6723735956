#!/usr/bin/env bash
# Runs the command line of this checkout with the stored settings of an installation; what the environment says wins.
#   command-line.sh <settings file> [argument …]
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
settings=$1
shift
if ! [ -r "$settings" ]; then
  printf 'portreeve: %s cannot be read. Run this as root.\n' "$settings" >&2
  exit 1
fi
# shellcheck source=scripts/shell/settings.sh
. "$ROOT/scripts/shell/settings.sh"
settings_load "$settings"
# A relative folder means the checkout, not the folder that this was called in.
PORTREEVE_DATA_DIR=${PORTREEVE_DATA_DIR:-$(dirname "$settings")}
export PORTREEVE_DATA_DIR
exec "$ROOT/node_modules/.bin/node" "$ROOT/.output/server/portreeve.mjs" "$@"
