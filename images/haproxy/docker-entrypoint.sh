#!/bin/sh
set -e
# Options alone mean "run the proxy with these options"; the proxy always runs as a master with workers in the foreground.
case "${1:-}" in -*) set -- haproxy "$@" ;; esac
if [ "${1:-}" = haproxy ]; then
  shift
  set -- haproxy -W -db "$@"
fi
exec "$@"
