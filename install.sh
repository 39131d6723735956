#!/usr/bin/env bash
# Installs Portreeve on this machine, or brings the installation up to date. Running it again changes nothing that is right already.
set -euo pipefail
CALLED_FROM=$PWD
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cd "$ROOT"

usage() {
  cat << 'TEXT'
Installs what Portreeve needs, builds it, starts it and prints where it is and how to log in.

  ./install.sh                start in the background: as a systemd unit, or supervised where there is no systemd
  ./install.sh --foreground   the same, but stay in this terminal until Ctrl-C
  ./install.sh --stop         stop Portreeve; the apps it runs go on serving
  ./install.sh --uninstall    stop Portreeve and take away its unit and, unless another one needs them, its firewall rules; apps and data stay
  ./install.sh --status       say whether it runs; the exit code is 0 when it is ready, 3 when it is not

  --port <number>      port of the API and the dashboard (default 9000)
  --data-dir <folder>  where everything is kept (default: where the last call kept it, at first .data in this checkout)
  --help

Settings are taken from the environment and kept for later calls: PORT, HOST, DOCKER_HOST and every PORTREEVE_ variable.
An empty value takes a kept setting away: PORTREEVE_BASE_DOMAIN= ./install.sh
TEXT
}

say() { printf '%s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
wrong() { printf 'install.sh: %s\nTry --help.\n' "$*" >&2; exit 2; }

# shellcheck source=scripts/shell/preflight.sh
. scripts/shell/preflight.sh
# shellcheck source=scripts/shell/settings.sh
. scripts/shell/settings.sh
# shellcheck source=scripts/shell/engine.sh
. scripts/shell/engine.sh
# shellcheck source=scripts/shell/service.sh
. scripts/shell/service.sh
# shellcheck source=scripts/shell/steps.sh
. scripts/shell/steps.sh
# shellcheck source=scripts/shell/run.sh
. scripts/shell/run.sh

mode=background data_dir_option='' port_option=''
choose_mode() { [ "$mode" = background ] || wrong "--$mode and $1 exclude each other."; mode=${1#--}; }
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --foreground | --stop | --status | --uninstall) choose_mode "$1" ;;
    --port | --data-dir)
      [ $# -ge 2 ] || wrong "$1 needs a value."
      if [ "$1" = --port ]; then port_option=$2; else data_dir_option=$2; fi
      shift ;;
    *) wrong "There is no option $1." ;;
  esac
  shift
done

require_root
if [ -n "$data_dir_option" ]; then PORTREEVE_DATA_DIR=$(cd "$CALLED_FROM" && realpath --canonicalize-missing "$data_dir_option"); fi
REMEMBERED=$ROOT/.data-dir
# An empty value in the environment means the default again. A relative folder means the checkout, for the server as well as here.
PORTREEVE_DATA_DIR=${PORTREEVE_DATA_DIR-$(data_dir_recall "$REMEMBERED")}
DATA_DIR=$(realpath --canonicalize-missing "${PORTREEVE_DATA_DIR:-.data}")
if [ "$DATA_DIR" != "$ROOT/.data" ]; then export PORTREEVE_DATA_DIR=$DATA_DIR; else unset PORTREEVE_DATA_DIR; fi
SETTINGS=$DATA_DIR/portreeve.env RUN_DIR=$DATA_DIR/supervisor UNIT=/etc/systemd/system/portreeve.service
settings_load "$SETTINGS"
if [ -n "$port_option" ]; then export PORT=$port_option; fi
require_single_lines
require_port_number PORT "${PORT:-9000}"
require_port_number PORTREEVE_HTTP_PORT "${PORTREEVE_HTTP_PORT:-80}"
require_port_number PORTREEVE_HTTPS_PORT "${PORTREEVE_HTTPS_PORT:-443}"
require_tools

if [ "$mode" != status ]; then require_own_unit; fi
case $mode in
  status) show_status; exit ;;
  stop) stop_portreeve; exit ;;
  uninstall) uninstall_portreeve; exit ;;
esac

if [ "$mode" = foreground ] && is_running; then fail 'Portreeve runs in the background already. Stop it with --stop first.'; fi

# One installer at a time: two would build into the same folder.
exec 9> "/run/portreeve-install.lock"
flock --nonblock 9 || fail 'Another install.sh is running; wait until it has ended.'
PACKAGE_LOG=$(mktemp "${TMPDIR:-/tmp}/portreeve-packages-XXXXXX")
trap 'rm -f "$PACKAGE_LOG"; engine_policy_remove' EXIT

changes=() restart=no
changed() { changes+=("$1"); say "$1"; }

check_room
# Made first and for root alone: everything below it holds secrets or logs.
(umask 077 && mkdir -p "$DATA_DIR")
install_missing_packages
ensure_engine_runs
install_node_packages
build_server
provide_edge_image
if settings_store "$SETTINGS"; then restart=yes; changed 'Stored the settings.'; fi
data_dir_remember "$REMEMBERED" "$DATA_DIR" "$ROOT/.data"

install_command_line
if [ "$mode" = foreground ]; then provide_base_images; run_in_foreground; fi
start_portreeve
rm -f "$SETTINGS.before"
provide_base_images
if [ ${#changes[@]} -eq 0 ]; then say 'Portreeve is installed and running already; nothing was changed.'; fi
show_access
