#!/bin/sh
set -e
# Templates become configuration with the container's own environment; only variables that exist are replaced, so nginx keeps its own `$uri`.
if [ "${1:-}" = nginx ] && [ -d /etc/nginx/templates ]; then
  names=$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/$\1/p' | tr '\n' ' ')
  for template in /etc/nginx/templates/*.template; do
    [ -e "$template" ] || continue
    envsubst "$names" < "$template" > "/etc/nginx/conf.d/$(basename "$template" .template)"
  done
fi
for script in /docker-entrypoint.d/*.sh; do
  if [ -x "$script" ]; then "$script"; fi
done
exec "$@"
