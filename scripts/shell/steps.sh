# shellcheck shell=bash disable=SC2153,SC2034
# The steps of install.sh, each of which does nothing when its result is there already. Source it from install.sh.

check_room() {
  if is_running; then return; fi
  local listen=${HOST:-0.0.0.0} found=0
  port_is_free "$listen" "${PORT:-9000}" || found=$?
  if [ $found -eq 2 ]; then fail "$listen is no address of this machine. Set HOST to one that it has, or leave it out."; fi
  [ $found -eq 0 ] || fail "Port ${PORT:-9000} is taken by another program. Stop it, or choose another port with --port."
  if ! [ -e node_modules/.package-lock.json ]; then require_space "$ROOT" 1500 'building Portreeve'; fi
  if ! engine_answers; then require_space /var/lib/docker 3000 'the container engine'; fi
  require_space "$DATA_DIR" 200 'the data of Portreeve'
  # The edge keeps serving while Portreeve is stopped, so its ports may be taken by itself; that of another installation is another program.
  if edge_runs; then return; fi
  local name
  for name in PORTREEVE_HTTP_PORT PORTREEVE_HTTPS_PORT; do
    local port=${!name:-}
    if [ -z "$port" ]; then if [ $name = PORTREEVE_HTTP_PORT ]; then port=80; else port=443; fi; fi
    port_is_free 0.0.0.0 "$port" || fail "Port $port, on which apps are served, is taken by another program. Stop it, or set $name to another port."
  done
}

edge_image() { sed -n "s/^export const EDGE_IMAGE = '\(.*\)'$/\1/p" server/platform/ingress/image.ts; }

edge_runs() {
  local client
  client=$(engine_client) || return 1
  [ "$(timeout 20 "$client" inspect --format '{{.State.Running}}' "$(edge_name)" 2> /dev/null)" = true ]
}

install_missing_packages() {
  local missing=()
  command -v git > /dev/null || missing+=(git)
  # Changes zones of name servers that take signed updates, for wildcard certificates.
  command -v nsupdate > /dev/null || missing+=(bind9-dnsutils)
  command -v setsid > /dev/null || missing+=(util-linux)
  if [ ${#missing[@]} -eq 0 ]; then return; fi
  command -v apt-get > /dev/null || fail "Please install ${missing[*]}: this machine has no apt to do it with."
  install_packages "${missing[@]}" || fail "apt could not install ${missing[*]}: $(tail -n 1 "$PACKAGE_LOG")"
  changed "Installed ${missing[*]}."
}

engine_fault=''
# Starts it and waits until it answers; else engine_fault says what is wrong.
start_engine_of_machine() {
  if has_systemd; then
    engine_fault='The container engine does not start; "journalctl -u docker" tells why.'
    systemctl reset-failed docker.service 2> /dev/null || true
    systemctl start docker.service 2> /dev/null || return 1
  else
    engine_fault="The supervisor of the container engine does not start; see $RUN_DIR/dockerd.log."
    supervised_start "$RUN_DIR" dockerd dockerd || return 1
  fi
  local tries=0
  until engine_answers; do
    tries=$((tries + 1))
    if [ $tries -gt 60 ]; then
      engine_fault='The container engine was started but does not answer.'
      if ! has_systemd; then tail -n 5 "$RUN_DIR/dockerd.log" >&2; supervised_stop "$RUN_DIR" dockerd; fi
      return 1
    fi
    sleep 0.5
  done
}

# Keeps packages from starting services while we install the engine. One that a killed call left would do so for ever.
ENGINE_POLICY=/usr/sbin/policy-rc.d
ENGINE_POLICY_TEXT='#!/bin/sh
# Of install.sh of Portreeve, while it installs the container engine.
exit 101'
engine_policy_remove() {
  if [ "$(cat "$ENGINE_POLICY" 2> /dev/null)" = "$ENGINE_POLICY_TEXT" ]; then rm -f "$ENGINE_POLICY"; fi
}

ensure_engine_runs() {
  engine_policy_remove
  if engine_answers; then return; fi
  if [ -n "${DOCKER_HOST:-}" ]; then fail "No container engine answers at DOCKER_HOST ($DOCKER_HOST). Start it, or unset DOCKER_HOST to use this machine's own."; fi
  install_engine
  if engine_answers; then return; fi
  if ! start_engine_of_machine; then
    # Nobody has anything in an engine that never ran, so that it may begin otherwise.
    if [ $engine_is_new = no ] || ! engine_settings_give_in $ENGINE_SETTINGS; then fail "$engine_fault"; fi
    say 'The container engine does not start with users of their own for containers, and is started without.'
    start_engine_of_machine || fail "$engine_fault"
  fi
  changed 'Started the container engine.'
}

ENGINE_SETTINGS=/etc/docker/daemon.json
engine_is_new=no
# One that somebody else set up is left as it is.
install_engine() {
  if command -v dockerd > /dev/null; then return; fi
  command -v apt-get > /dev/null || fail 'There is no container engine, and no apt to install one with. Install Docker, then run this again.'
  say 'Installing the container engine.'
  if ! [ -e $ENGINE_SETTINGS ]; then
    mkdir -p /etc/docker
    engine_settings > $ENGINE_SETTINGS
    engine_is_new=yes
  fi
  local result=0
  # Without systemd the package must not start the engine: the supervisor does.
  if ! has_systemd && ! [ -e "$ENGINE_POLICY" ]; then printf '%s\n' "$ENGINE_POLICY_TEXT" > "$ENGINE_POLICY"; chmod 755 "$ENGINE_POLICY"; fi
  install_packages docker.io iptables ca-certificates || result=1
  # Where the package starts the engine, one that cannot start is one that cannot be installed.
  if [ $result -ne 0 ] && [ $engine_is_new = yes ] && command -v dockerd > /dev/null && engine_settings_give_in $ENGINE_SETTINGS; then
    result=0
    install_packages docker.io iptables ca-certificates || result=1
  fi
  engine_policy_remove
  [ $result -eq 0 ] || fail "apt could not install the container engine: $(grep -E '^(E|Err)' "$PACKAGE_LOG" | tail -n 1). Is the network up?"
  changed 'Installed the container engine.'
}

# What an upgrade makes lies here until it is whole: npm and the build begin by taking away what is in their place, of which the server that
# runs still loads parts, and which has to be there when it is started again, whatever becomes of this call.
FRESH=.upgrade

# put_in_place <what was made> <place>
put_in_place() {
  rm -rf "$FRESH/before"
  if [ -e "$2" ]; then mv "$2" "$FRESH/before"; fi
  mv "$1" "$2"
  rm -rf "$FRESH"
}

install_node_packages() {
  if ! [ -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    say 'Installing packages from the npm registry.'
    rm -rf "$FRESH"
    mkdir -p "$FRESH/packages"
    cp package.json package-lock.json "$FRESH/packages/"
    if [ -e .npmrc ]; then cp .npmrc "$FRESH/packages/"; fi
    (cd "$FRESH/packages" && npm ci --no-audit --no-fund --loglevel=error) || fail 'npm could not install the packages; its message is above. Is the npm registry reachable from here?'
    put_in_place "$FRESH/packages/node_modules" node_modules
    restart=yes
    changed 'Installed the npm packages.'
  fi
  export PATH="$ROOT/node_modules/.bin:$PATH"
  local napi
  napi=$(node -p 'process.versions.napi')
  [ "$napi" -ge 10 ] || fail "Portreeve needs Node.js 22.14 or newer on this kind of machine; it has $(node --version)."
}

# Everything that the build reads; templates and the scripts that read them are a part of it, too.
BUILT_FROM=(server routes tasks storage cli templates scripts dashboard/src dashboard/*.* nitro.config.ts package.json package-lock.json)

build_server() {
  local entry=.output/server/index.mjs
  if [ -e $entry ] && [ -z "$(find "${BUILT_FROM[@]}" -newer $entry -print -quit)" ]; then return; fi
  say 'Building Portreeve.'
  local log
  rm -rf "$FRESH"
  if ! log=$(OUTPUT_FOLDER=$FRESH/output npm run --silent build 2>&1); then
    tail -n 30 <<< "$log" >&2
    fail 'Portreeve does not build; the reason is above. What was installed before is as it was.'
  fi
  put_in_place "$FRESH/output" .output
  restart=yes
  changed 'Built Portreeve.'
}

# render_command <checkout> <settings file>: the program that is put on the PATH, on standard output.
render_command() {
  printf '#!/usr/bin/env bash\n# The command line of the Portreeve in %s; written by its install.sh.\nexec bash %s %s "$@"\n' "${1//$'\n'/ }" "$(printf %q "$1/scripts/shell/command-line.sh")" "$(printf %q "$2")"
}

# A program of that name that somebody else put there is left alone.
install_command_line() {
  local file=${1:-/usr/local/bin/portreeve} text
  text=$(render_command "$ROOT" "$SETTINGS")
  if [ -e "$file" ] && [ "$(cat "$file")" = "$text" ]; then return; fi
  if [ -e "$file" ] && ! grep -qs 'written by its install.sh' "$file"; then
    say "$file is another program, so the command line is not on the PATH. It is here: $ROOT/scripts/shell/command-line.sh $SETTINGS"
    return
  fi
  (umask 022 && mkdir -p "$(dirname "$file")" && printf '%s\n' "$text" > "$file.new" && chmod 755 "$file.new")
  mv "$file.new" "$file"
  changed 'Put the command portreeve on the PATH.'
}

# Nothing can be served without the edge's image, so it comes before the start.
provide_edge_image() {
  local edge
  edge=$(edge_image)
  if "$(engine_client)" image inspect "$edge" > /dev/null 2>&1; then return; fi
  say "Getting the image of the edge, $edge."
  node scripts/images.ts --only haproxy || fail 'The image of the edge could neither be pulled nor made; the reason is above.'
  changed 'Got the image of the edge.'
}

# When the edge's image had to be made here, there is no registry for the images of builds either. Portreeve runs meanwhile.
provide_base_images() {
  local stand_in
  stand_in=$("$(engine_client)" image inspect --format '{{ index .Config.Labels "portreeve.stand-in" }}' "$(edge_image)")
  if [ "$stand_in" != true ] || [ -z "$(node scripts/images.ts --missing)" ]; then return; fi
  say 'Making base images for builds, because no container registry is reachable. This takes a few minutes.'
  # Whoever installs it the first time has seen neither the address nor the password yet.
  node scripts/images.ts --no-pull || {
    if is_ready; then show_access; fi
    fail 'Not all base images could be made; the reason is above. Call this again to make the rest.'
  }
  changed 'Made base images for builds.'
}
