#!/bin/bash
# Makes a cluster in $PGDATA on the first start, from the variables that the official image knows, then serves it.
set -euo pipefail
case "${1:-}" in -*) set -- postgres "$@" ;; esac
[ "${1:-}" = postgres ] || exec "$@"

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA"
  find "$PGDATA" \! -user postgres -exec chown postgres '{}' +
  chmod 700 "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  if [ -z "${POSTGRES_PASSWORD:-}" ]; then
    echo 'Error: Database is uninitialized and superuser password is not specified.' >&2
    exit 1
  fi
  read -r -a options <<< "${POSTGRES_INITDB_ARGS:-}"
  initdb --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") ${options[@]+"${options[@]}"}
  printf '\nhost all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
  # Nobody but this script may reach it until it is whole.
  pg_ctl --pgdata="$PGDATA" --options="-c listen_addresses=''" --wait start
  if [ "$database" != postgres ]; then
    psql --username="$user" --dbname=postgres --set=ON_ERROR_STOP=1 --set=name="$database" <<< 'CREATE DATABASE :"name";'
  fi
  pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop
fi
exec "$@" -c 'listen_addresses=*'
