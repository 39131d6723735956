#!/usr/bin/env bash
# Becomes PID 1 of a machine of its own: systemd in new namespaces (all but that of users) over a folder with a Debian.
#   systemd-machine.sh <root folder> <network namespace> <file for the console> <name of its control group>
set -euo pipefail
ROOT=$1 NETWORK=$2 CONSOLE=$3 GROUP=$4
touch "$CONSOLE"
enter() {
  mkdir -p "$1/$GROUP"
  # A group of version 1 takes nobody before it has processors and memory.
  for file in cpuset.cpus cpuset.mems; do if [ -e "$1/$file" ]; then cat "$1/$file" > "$1/$GROUP/$file"; fi; done
  if [ -e "$1/cgroup.clone_children" ]; then echo 1 > "$1/$GROUP/cgroup.clone_children"; fi
  echo $$ > "$1/$GROUP/cgroup.procs"
}
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then enter /sys/fs/cgroup; else for tree in /sys/fs/cgroup/*/; do enter "${tree%/}"; done; fi
trees=$(ls /sys/fs/cgroup)

inside() {
  mount --bind "$ROOT" "$ROOT"
  mount -t proc proc "$ROOT/proc"
  mount -t sysfs sysfs "$ROOT/sys"
  mount -t tmpfs -o mode=755 tmpfs "$ROOT/dev"
  mount -t tmpfs -o mode=755 tmpfs "$ROOT/run"
  mkdir "$ROOT/dev/pts" "$ROOT/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$ROOT/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$ROOT/dev/shm"
  local node
  for node in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
    # shellcheck disable=SC2086 # three words
    set -- $node
    mknod -m 666 "$ROOT/dev/$1" c "$2" "$3"
  done
  ln -s pts/ptmx "$ROOT/dev/ptmx"
  ln -s /proc/self/fd "$ROOT/dev/fd"
  ln -s fd/0 "$ROOT/dev/stdin"
  ln -s fd/1 "$ROOT/dev/stdout"
  ln -s fd/2 "$ROOT/dev/stderr"
  touch "$ROOT/dev/console"
  mount --bind "$CONSOLE" "$ROOT/dev/console"
  # What it sees of the control groups begins at its own, in the hierarchies that the kernel has here.
  if grep -qw cgroup.controllers <<< "$trees"; then
    mount -t cgroup2 cgroup2 "$ROOT/sys/fs/cgroup"
  else
    mount -t tmpfs -o mode=755 tmpfs "$ROOT/sys/fs/cgroup"
    local tree
    for tree in $trees; do
      mkdir "$ROOT/sys/fs/cgroup/$tree"
      case $tree in
        unified) mount -t cgroup2 cgroup2 "$ROOT/sys/fs/cgroup/$tree" ;;
        systemd) mount -t cgroup -o none,name=systemd cgroup "$ROOT/sys/fs/cgroup/$tree" ;;
        *) mount -t cgroup -o "$tree" cgroup "$ROOT/sys/fs/cgroup/$tree" ;;
      esac
    done
  fi
  hostname machine
  mkdir -p "$ROOT/outside"
  cd "$ROOT"
  pivot_root . outside
  umount --lazy /outside
  exec env -i container=portreeve PATH=/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_PROC_CMDLINE=systemd.log_color=0 /lib/systemd/systemd --system
}
export -f inside
export ROOT CONSOLE trees
exec nsenter "--net=/run/netns/$NETWORK" unshare --mount --uts --ipc --cgroup --pid --fork --kill-child --propagation private bash -c 'set -euo pipefail; inside'
