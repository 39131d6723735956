# shellcheck shell=bash
# Functions that start, stop and look at a program in the background, under systemd or under our own supervisor. Source it.

has_systemd() { [ -d /run/systemd/system ] && command -v systemctl > /dev/null; }

# supervised_pid <folder> <name>: prints the supervisor's process id; fails when it does not run (a stale file is no process of ours).
supervised_pid() {
  local pid
  pid=$(cat "$1/$2.pid" 2> /dev/null) || return 1
  tr '\0' '\n' < "/proc/$pid/cmdline" 2> /dev/null | grep -qxF "$1" || return 1
  echo "$pid"
}

# supervised_start <folder> <name> <command> [argument …]
supervised_start() {
  local folder=$1 name=$2
  (umask 077 && mkdir -p "$folder")
  # The lock on this installer must not live on in the background.
  setsid bash "$ROOT/scripts/shell/supervise.sh" "$@" > /dev/null 2>&1 < /dev/null 9>&- &
  local tries=0
  while ! supervised_pid "$folder" "$name" > /dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 50 ]; then return 1; fi
    sleep 0.1
  done
}

# supervised_stop <folder> <name>: returns when the program has ended.
supervised_stop() {
  local pid tries=0
  pid=$(supervised_pid "$1" "$2") || return 0
  kill -TERM "$pid" 2> /dev/null || true
  # Asked by its file and command line: a process that has ended but was not yet collected still has an id.
  while supervised_pid "$1" "$2" > /dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 600 ]; then return 1; fi
    sleep 0.1
  done
}

# unit_quote <text>: a value for a unit file, where % and quotes have a meaning.
unit_quote() {
  local text=$1
  text=${text//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//%/%%}
  printf '"%s"' "$text"
}

# render_unit <checkout> <data folder>: the systemd unit, on standard output. Portreeve drives the engine, which amounts to root, so it runs
# as root; the unit takes away what it does not need, and leaves it the cgroup tree, where it caps builds, and /run, where installations on one
# engine agree and the firewall has its lock.
render_unit() {
  local checkout=$1 data=$2
  cat << UNIT
[Unit]
Description=Portreeve, application hosting
Wants=network-online.target
After=network-online.target docker.service
StartLimitIntervalSec=0

[Service]
Type=simple
WorkingDirectory=${checkout//%/%%}
Environment=NODE_ENV=production PORT=9000 MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=131072
EnvironmentFile=${data//%/%%}/portreeve.env
ExecStart=$(unit_quote "$checkout/node_modules/.bin/node") --max-semi-space-size=2 --heap-growing-percent=50 --expose-gc --no-opt --no-maglev $(unit_quote "$checkout/.output/server/index.mjs")
Restart=always
RestartSec=2
KillMode=mixed
TimeoutStopSec=40
UMask=0077
LimitNOFILE=65536
OOMScoreAdjust=-200
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=$(unit_quote "$data") /sys/fs/cgroup /run
PrivateTmp=yes
ProtectHome=read-only
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
UNIT
}
