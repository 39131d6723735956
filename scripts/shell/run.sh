# shellcheck shell=bash disable=SC2153
# Starts, stops and describes the installed Portreeve. Source it from install.sh.

# The address to ask this installation at: the one it listens on, or this machine's own when it listens on all.
local_address() {
  case ${HOST:-} in '' | 0.0.0.0 | '::' | '[::]') echo 127.0.0.1 ;; *:*) echo "[$HOST]" ;; *) echo "$HOST" ;; esac
}

# http_status <path>: the status code, or 000. With Node, because a fresh machine may have no curl.
http_status() {
  node -e '
    fetch(process.argv[1], { signal: AbortSignal.timeout(5000) }).then((answer) => answer.status, () => "000").then((code) => { console.log(code); process.exit() })
  ' "http://$(local_address):${PORT:-9000}$1"
}

is_ready() { [ "$(http_status /readyz)" = 200 ]; }

is_running() {
  if has_systemd; then systemctl is-active --quiet portreeve.service; else supervised_pid "$RUN_DIR" portreeve > /dev/null; fi
}

# The last lines that the background process wrote.
background_log() {
  if has_systemd; then journalctl --unit portreeve --no-pager --lines 20 --output cat; else tail -n 20 "$RUN_DIR/portreeve.log"; fi
}

# How often it has ended by itself. systemd begins anew at most starts, but not after a stop while it waited for the next one.
count_restarts() {
  if has_systemd; then systemctl show --property NRestarts --value portreeve.service; else cat "$RUN_DIR/portreeve.log" 2> /dev/null | grep -c 'supervisor: portreeve ended' || true; fi
}

# Waits until the server says that it is ready; gives up early when it keeps ending, beyond what was counted before.
await_ready() {
  local deadline=$((SECONDS + 120)) restarts_before=$1 restarts
  until is_ready; do
    restarts=$(count_restarts)
    if [ "$restarts" -lt "$restarts_before" ]; then restarts_before=$restarts; fi
    if [ $SECONDS -gt $deadline ] || [ $((restarts - restarts_before)) -ge 3 ]; then return 1; fi
    sleep 0.5
  done
}

# Where what it printed stands, for a sentence.
log_place() {
  if has_systemd; then echo 'journalctl -u portreeve'; else echo "$RUN_DIR/portreeve.log"; fi
}

# Whether something was put in place since the last start: a call that was ended in between left the server from before running with it.
start_is_due() {
  [ -e "$SETTINGS.started" ] && [ -n "$(find .output/server/index.mjs node_modules/.package-lock.json "$SETTINGS" -newer "$SETTINGS.started" -print -quit 2> /dev/null)" ]
}

start_portreeve() {
  local restarts was_running=no
  if is_running; then was_running=yes; fi
  restarts=$(count_restarts)
  if start_is_due; then restart=yes; fi
  (umask 077 && touch "$SETTINGS.starting")
  if has_systemd; then start_unit; else start_supervised; fi
  mv "$SETTINGS.starting" "$SETTINGS.started"
  if await_ready "$restarts"; then return; fi
  background_log >&2
  stop_background
  if settings_take_back "$SETTINGS" && [ "$was_running" = yes ]; then
    if run_as_before; then
      fail "Portreeve did not become ready with these settings, so they were taken back: it runs as before. Its last lines are above, all of them in $(log_place)."
    fi
    stop_background
    fail "Portreeve did not become ready with these settings, nor with those from before, so it was stopped. All that it printed: $(log_place)."
  fi
  fail "Portreeve was started but did not become ready, so it was stopped again; its last lines are above, all of them in $(log_place)."
}

# Starts it with the stored settings alone: those of this call are what it did not start with.
run_as_before() (
  name=
  while IFS= read -r name; do unset "$name"; done < <(setting_names)
  settings_load "$SETTINGS"
  restarts=$(count_restarts)
  if has_systemd; then start_unit; else start_supervised; fi
  await_ready "$restarts"
)

start_unit() {
  local unit
  unit=$(render_unit "$ROOT" "$DATA_DIR")
  if ! [ -e "$UNIT" ] || [ "$(cat "$UNIT")" != "$unit" ]; then
    printf '%s\n' "$unit" > "$UNIT"
    systemctl daemon-reload
    systemctl enable --quiet portreeve.service
    restart=yes
    changed 'Installed the unit portreeve.service.'
  fi
  if ! is_running; then
    systemctl start portreeve.service || fail 'systemd could not start Portreeve; "journalctl -u portreeve" tells why.'
    changed 'Started Portreeve.'
  elif [ "$restart" = yes ]; then
    systemctl restart portreeve.service || fail 'systemd could not restart Portreeve; "journalctl -u portreeve" tells why.'
    changed 'Restarted Portreeve.'
  fi
}

start_supervised() {
  local word=Started
  if is_running; then
    if [ "$restart" = no ]; then return; fi
    stop_background
    word=Restarted
  fi
  supervised_start "$RUN_DIR" portreeve bash "$ROOT/scripts/shell/run-server.sh" "$SETTINGS" || fail "The supervisor does not start; is the disk of $RUN_DIR full?"
  changed "$word Portreeve."
}

stop_background() {
  if has_systemd; then systemctl stop portreeve.service; else supervised_stop "$RUN_DIR" portreeve; fi || fail 'Portreeve does not stop.'
}

stop_portreeve() {
  if ! is_running; then say 'Portreeve is not running; nothing was changed.'; return; fi
  stop_background
  say 'Portreeve is stopped. The apps it runs go on serving.'
}

# Fails when the unit of this machine is of another installation: there is one name, and whoever took it would serve something empty in
# the place of what is there.
require_own_unit() {
  local other
  if ! has_systemd || ! [ -e "$UNIT" ]; then return; fi
  other=$(sed -n 's/^EnvironmentFile=//p' "$UNIT")
  other=${other//%%/%}
  if [ -z "$other" ] || [ "$other" = "$SETTINGS" ]; then return; fi
  fail "The unit portreeve.service is of the installation in $(dirname "$other"). Name that with --data-dir, or take it away first: --uninstall --data-dir $(printf %q "$(dirname "$other")")"
}

# The name that everything of this installation carries on the engine; nothing where it never started.
installation_name() {
  if ! [ -s "$DATA_DIR/portreeve.db" ]; then return; fi
  "$ROOT/node_modules/.bin/node" --no-warnings -e '
    const { DatabaseSync } = require("node:sqlite")
    console.log(new DatabaseSync(process.argv[1]).prepare("SELECT value FROM meta WHERE key = ?").get("installation").value)
  ' "$DATA_DIR/portreeve.db" 2> /dev/null || true
}

# The container of this installation's edge: `edgeHash` says the same.
edge_name() { printf 'portreeve-edge-%s' "$(printf %s "$DATA_DIR/ingress" | sha256sum | cut -c 1-12)"; }

# Commands that take away what an uninstall leaves, of this installation and of no other.
show_remains() {
  local ours="--filter label=portreeve.installation=$1"
  say 'To remove those, too:'
  # Another engine than that of the machine would be asked otherwise.
  if [ -n "${DOCKER_HOST:-}" ]; then say "  export DOCKER_HOST=$(printf %q "$DOCKER_HOST")"; fi
  if [ -n "$1" ]; then
    say "  docker ps -aq $ours | xargs -r docker rm -f"
    say "  docker network ls -q $ours | xargs -r docker network rm"
    say "  docker image ls -q $ours | sort -u | xargs -r docker image rm -f"
    say "  docker volume ls -q $ours | xargs -r docker volume rm    # data of apps and databases"
  fi
  say "  docker rm -f $(edge_name)"
  say "  rm -r $(printf %q "$DATA_DIR")"
}

# uninstall_portreeve [command on the PATH]
uninstall_portreeve() {
  local command=${1:-/usr/local/bin/portreeve}
  stop_portreeve
  if has_systemd && [ -e "$UNIT" ]; then
    systemctl disable --quiet portreeve.service || true
    rm -f "$UNIT"
    systemctl daemon-reload
  fi
  # One of another checkout, or of somebody else, is left alone.
  if grep -qsF "The command line of the Portreeve in $ROOT; written by its install.sh." "$command"; then rm -f "$command"; fi
  local name
  name=$(installation_name)
  if host_rules_shared "$name"; then
    say 'The unit and the command of Portreeve are gone. The firewall rules stay: they guard the apps of another installation, too.'
  else
    host_rules_remove || fail 'The rules of the firewall could not be taken away.'
    say 'The unit, the command and the firewall rules of Portreeve are gone.'
  fi
  say "What it keeps is still in $DATA_DIR, and its containers run on."
  show_remains "$name"
}

show_status() {
  if is_ready; then say "Portreeve is ready at $(public_url)."; return; fi
  if is_running; then say "Portreeve runs, but is not ready (/readyz answers $(http_status /readyz))."; else say 'Portreeve is not running.'; fi
  return 3
}

public_url() {
  local address=${HOST:-}
  case $address in '' | 0.0.0.0 | '::' | '[::]') address=$(hostname -I 2> /dev/null | awk '{ print $1 }') ;; esac
  if [ -z "$address" ]; then address=127.0.0.1; fi
  case $address in \[*) ;; *:*) address="[$address]" ;; esac
  echo "${PORTREEVE_PUBLIC_URL:-http://$address:${PORT:-9000}}"
}

show_access() {
  local password=$DATA_DIR/initial-admin-password
  say ''
  say "Portreeve is ready:  $(public_url)"
  say "Administrator:       ${PORTREEVE_ADMIN_EMAIL:-admin@localhost}"
  if [ -e "$password" ]; then say "Password:            $(cat "$password")   (change it after the first login)"
  elif [ -n "${PORTREEVE_ADMIN_PASSWORD:-}" ]; then say 'Password:            the one that PORTREEVE_ADMIN_PASSWORD gave at the first start, unless it was changed'
  else say 'Password:            the one you chose'; fi
  say "Log:                 $(log_place)"
}

# Runs the server as a child of this shell and goes when it goes.
run_in_foreground() {
  bash "$ROOT/scripts/shell/run-server.sh" "$SETTINGS" 9>&- &
  local server=$! code=0
  trap 'kill -TERM $server 2> /dev/null' INT TERM HUP
  while kill -0 $server 2> /dev/null && ! is_ready; do sleep 0.5; done
  if is_ready; then show_access; fi
  wait $server || code=$?
  # The first wait ends when a signal arrives; the server then still has connections to end.
  while kill -0 $server 2> /dev/null; do
    code=0
    wait $server || code=$?
  done
  exit $code
}
