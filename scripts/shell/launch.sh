#!/usr/bin/env bash
# Starts the supervisor of a program in the background and returns at once; the environment of the call becomes that of the program.
#   launch.sh <folder> <name> <command> [argument …]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
setsid bash "$here/supervise.sh" "$@" > /dev/null 2>&1 < /dev/null &
