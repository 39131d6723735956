#!/bin/sh
set -e
# Options and names that are no command are for node itself, as in the official image.
case "${1:-}" in
  -* | '') set -- node "$@" ;;
  *) if ! command -v "$1" > /dev/null 2>&1 || { [ -f "$1" ] && ! [ -x "$1" ]; }; then set -- node "$@"; fi ;;
esac
exec "$@"
