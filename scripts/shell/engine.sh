# shellcheck shell=bash
# Functions about the container engine, for install.sh, test.sh and .ci/run. Source it; it does nothing by itself.

# Debian's client is preferred: another `docker` that comes first on PATH may be a wrapper without an engine.
engine_client() { if [ -x /usr/bin/docker ]; then echo /usr/bin/docker; else command -v docker; fi; }

# Succeeds when an engine answers on DOCKER_HOST or on the default socket.
engine_answers() {
  local client
  client=$(engine_client) && timeout 20 "$client" version --format '{{.Server.Version}}' > /dev/null 2>&1
}

# Installs Debian packages without questions; package lists are fetched only when the first try shows that they are old or missing.
install_packages() {
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "$@" > "$PACKAGE_LOG" 2>&1 && return
  apt-get update --quiet >> "$PACKAGE_LOG" 2>&1 || true
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "$@" >> "$PACKAGE_LOG" 2>&1
}

# Takes Portreeve's chains out of the firewall: all of them begin with PTR-. What it set apart on the engine's default bridge is joined again.
# A Portreeve that runs makes its own again.
host_rules_remove() {
  local program rules port
  for program in iptables ip6tables; do
    rules=$("$program" -w 10 -S 2> /dev/null) || continue
    case $rules in *'-N PTR-'*) ;; *) continue ;; esac
    {
      echo '*filter'
      sed -n '/^-A .* -j PTR-[^ ]*$/s/^-A/-D/p' <<< "$rules"
      sed -n 's/^-N \(PTR-.*\)/-F \1/p' <<< "$rules"
      sed -n 's/^-N \(PTR-.*\)/-X \1/p' <<< "$rules"
      echo COMMIT
    } | "$program-restore" -w 10 --noflush || return 1
  done
  while read -r port; do
    # It may be gone by now.
    ip link set dev "$port" type bridge_slave isolated off 2> /dev/null || true
  done < <(ip -o -d link show master docker0 2> /dev/null | sed -n 's/^[0-9]*: \([^:@ ]*\).* isolated on .*/\1/p')
}

# The rules are the same for every installation of this network: each takes part while it runs, and its apps need them also while it does not.
# host_rules_shared <installation> [register]: succeeds when another one runs here, or has containers on this engine.
host_rules_shared() {
  local register=${2:-/run/portreeve/isolation/$(readlink /proc/self/ns/net | tr -dc 0-9)} entry pid client
  for entry in "$register"/*; do
    pid=${entry##*/}
    if [ -e "$entry" ] && kill -0 "${pid%%.*}" 2> /dev/null; then return 0; fi
  done
  client=$(engine_client) || return 1
  # Read to the end: whoever goes at the first line lets what writes before it fail, and the whole with that.
  [ -n "$(timeout 20 "$client" ps --all --filter label=portreeve.managed=true --format '{{.Label "portreeve.installation"}}' 2> /dev/null | grep . | grep -vxF -- "$1")" ]
}

ENGINE_WITH_USERS='{ "live-restore": true, "userns-remap": "default" }'
PLAIN_ENGINE='{ "live-restore": true }'
# How an engine of ours is set up: it keeps containers running while it is restarted, and root of a container is nobody of this machine, where the
# kernel can do that (docs/decisions/0115). What an earlier engine left would be hidden by it.
engine_settings() {
  if ! [ -e /var/lib/docker/overlay2 ] && command -v useradd > /dev/null && unshare --user true 2> /dev/null; then
    echo "$ENGINE_WITH_USERS"
  else
    echo "$PLAIN_ENGINE"
  fi
}

# Takes the users of their own away from an engine that we have just set up and that does not start with them; fails where there is nothing to take.
# engine_settings_give_in <file>
engine_settings_give_in() {
  [ "$(cat "$1" 2> /dev/null)" = "$ENGINE_WITH_USERS" ] || return 1
  echo "$PLAIN_ENGINE" > "$1"
}

# Starts an engine of its own: socket, state and images in folders that belong to nobody else. Prints nothing when it succeeds.
# private_engine_start <run folder> <data folder> [command that starts it, as `nsenter …`]
private_engine_start() {
  local run=$1 data=$2
  shift 2
  mkdir -p "$run" "$data"
  # Without a daemon.json, so that settings of the machine's own engine do not leak in.
  echo '{}' > "$run/daemon.json"
  # Each container starts the engine's program twice more, which looks for garbage in a memory that is still empty: a third of what that takes.
  GOGC=400 setsid "$@" dockerd --config-file "$run/daemon.json" --data-root "$data" --exec-root "$run/exec" --pidfile "$run/docker.pid" \
    --host "unix://$run/docker.sock" > "$run/dockerd.log" 2>&1 < /dev/null &
  local pid=$! waited=0
  echo "$pid" > "$run/started.pid"
  while ! DOCKER_HOST="unix://$run/docker.sock" engine_answers; do
    waited=$((waited + 1))
    if [ "$waited" -gt 120 ] || ! kill -0 "$pid" 2> /dev/null; then
      echo "The container engine did not start. Its last lines:" >&2
      tail -n 15 "$run/dockerd.log" >&2
      return 1
    fi
    sleep 0.5
  done
}

# Stops an engine started by private_engine_start, its containers first, and takes away what it mounted.
# private_engine_stop <run folder> <data folder>
private_engine_stop() {
  local run=$1 data=$2 client pid containers
  client=$(engine_client) || return 0
  pid=$(cat "$run/started.pid" 2> /dev/null) || return 0
  containers=$(DOCKER_HOST="unix://$run/docker.sock" timeout 30 "$client" ps --quiet 2> /dev/null || true)
  # shellcheck disable=SC2086 # a list of ids
  if [ -n "$containers" ]; then DOCKER_HOST="unix://$run/docker.sock" timeout 60 "$client" kill $containers > /dev/null 2>&1 || true; fi
  kill "$pid" 2> /dev/null || true
  local waited=0
  while kill -0 "$pid" 2> /dev/null; do
    waited=$((waited + 1))
    if [ "$waited" -gt 60 ]; then kill -9 "$pid" 2> /dev/null || true; fi
    sleep 0.5
  done
  host_rules_remove || true
  # An engine mounts its data folder on itself and leaves that behind.
  awk -v run="$run/" -v data="$data/" 'index($2 "/", run) == 1 || index($2 "/", data) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mounted; do umount --lazy "$mounted" || true; done
  rm -rf "$run"
}
