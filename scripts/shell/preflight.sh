# shellcheck shell=bash
# What must be true before anything is installed; each refusal is one sentence. Source it. Needs `fail`.

require_root() { [ "$(id -u)" -eq 0 ] || fail 'Run this as root: it installs packages and starts a service.'; }

require_tools() {
  local tool
  [ "$(uname -s)" = Linux ] || fail 'Portreeve runs on Linux only.'
  for tool in node npm; do
    command -v $tool > /dev/null || fail "Node.js 20 or newer with npm must be installed first; the command $tool is missing."
  done
  local major
  major=$(node -p 'process.versions.node.split(".")[0]')
  [ "$major" -ge 20 ] || fail "Node.js 20 or newer must be installed first; this machine has $(node --version)."
}

# require_space <folder> <MiB> <what for>: the folder may not exist yet.
require_space() {
  local folder=$1 free
  while ! [ -d "$folder" ]; do folder=$(dirname "$folder"); done
  free=$(($(df -Pk "$folder" | awk 'NR == 2 { print $4 }') / 1024))
  [ "$free" -ge "$2" ] || fail "The disk is too small: $3 needs $2 MiB free in $1, and there are $free MiB."
}

# port_is_free <address> <port>: 1 where another program has it, 2 where nothing can listen at that address.
port_is_free() {
  node -e '
    const server = require("node:net").createServer()
    const is_taken = ({ code }) => ["EADDRINUSE", "EACCES"].includes(code)
    server.once("error", (error) => process.exit(is_taken(error) ? 1 : 2)).listen({ host: process.argv[1], port: Number(process.argv[2]), exclusive: true }, () => server.close())
  ' "$1" "$2"
}

require_port_number() {
  case $2 in '' | *[!0-9]*) fail "$1 must be a port number from 1 to 65535, not \"$2\"." ;; esac
  if [ "$2" -lt 1 ] || [ "$2" -gt 65535 ]; then fail "$1 must be a port number from 1 to 65535, not $2."; fi
}
