#!/bin/sh
# Gives the data to the server's user and becomes that user; a first argument that is an option is one of the server.
set -eu
case "${1:-}" in -*|*.conf) set -- "$SERVER-server" "$@" ;; esac
case "${1:-}" in
  "$SERVER-server"|container-server)
    if [ "$(id -u)" = 0 ]; then
      find . \! -user "$SERVER" -exec chown "$SERVER" '{}' +
      exec setpriv --reuid="$SERVER" --regid="$SERVER" --init-groups "$0" "$@"
    fi
    ;;
esac
exec "$@"
