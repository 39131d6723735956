#!/bin/bash
# Makes the system tables and the administrator on the first start, from the variables of the official image, then serves.
set -euo pipefail
case "${1:-}" in -*) set -- mariadbd "$@" ;; esac
[ "${1:-}" = mariadbd ] || exec "$@"

if [ "$(id -u)" = 0 ]; then
  find /var/lib/mysql /run/mysqld \! -user mysql -exec chown mysql '{}' +
  exec setpriv --reuid=mysql --regid=mysql --init-groups "$0" "$@"
fi

if [ ! -d /var/lib/mysql/mysql ]; then
  if [ -z "${MARIADB_ROOT_PASSWORD:-}" ]; then
    echo '[ERROR] [Entrypoint]: Database is uninitialized and password option is not specified' >&2
    exit 1
  fi
  quoted=${MARIADB_ROOT_PASSWORD//\\/\\\\}
  quoted=${quoted//\'/\\\'}
  mariadb-install-db --datadir=/var/lib/mysql --auth-root-authentication-method=normal --skip-test-db > /dev/null
  {
    echo 'USE mysql;'
    echo "DELETE FROM global_priv WHERE User <> 'mariadb.sys' AND User <> 'root' OR User = 'root' AND Host <> 'localhost';"
    echo 'FLUSH PRIVILEGES;'
    if [ "${MARIADB_ROOT_HOST:-%}" != localhost ]; then
      echo "CREATE USER 'root'@'${MARIADB_ROOT_HOST:-%}' IDENTIFIED BY '$quoted';"
      echo "GRANT ALL ON *.* TO 'root'@'${MARIADB_ROOT_HOST:-%}' WITH GRANT OPTION;"
    fi
    echo "ALTER USER 'root'@'localhost' IDENTIFIED BY '$quoted';"
  } | mariadbd --bootstrap --datadir=/var/lib/mysql
  echo 'MariaDB init process done. Ready for start up.'
fi
exec "$@"
