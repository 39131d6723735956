#!/usr/bin/env bash
# Starts the supervisor of a program in the background and returns once it is there; the environment of the call becomes that of the program.
#   launch.sh <folder> <name> <command> [argument …]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
rm -f "$1/$2.pid"
setsid bash "$here/supervise.sh" "$@" > /dev/null 2>&1 < /dev/null &
# Who called may end everything in the process group of this script when it returns. The supervisor has left
# that group once its file is there.
for _ in $(seq 100); do
  if [ -s "$1/$2.pid" ]; then exit 0; fi
  sleep 0.1
done
echo "The supervisor did not start within 10 s; is the disk of $1 full?" >&2
exit 1
