# shellcheck shell=bash
# One more lane for tests: a network namespace with an engine of its own, so that parts of the tests that need an engine run side by side. Needs engine.sh.

# Makes the namespace <name> and its way out. Fails at once where the name is taken. The third number of its addresses is <number>.
# lane_network <name> <number>
lane_network() {
  local name=$1 net=10.231.$2
  ip netns add "$name" || return 1
  ip link add "$name" type veth peer name eth0 netns "$name" || return 1
  ip address add "$net.254/24" dev "$name" && ip link set "$name" up || return 1
  ip -n "$name" address add "$net.1/24" dev eth0 && ip -n "$name" link set lo up && ip -n "$name" link set eth0 up || return 1
  ip -n "$name" route add default via "$net.254" || return 1
  sysctl --quiet --write net.ipv4.ip_forward=1 || return 1
  iptables -w 10 -t nat -I POSTROUTING -s "$net.0/24" ! -o "$name" -j MASQUERADE || return 1
  iptables -w 10 -I FORWARD -i "$name" -j ACCEPT && iptables -w 10 -I FORWARD -o "$name" -j ACCEPT
}

# Succeeds when names are found from inside as they are from here; a name server on this machine's loopback is not reached.
# lane_finds_names <name>
lane_finds_names() {
  local host
  host=$(npm config get registry | sed -E 's#^[a-z]+://([^/:]+).*#\1#')
  nsenter "--net=/run/netns/$1" timeout 10 getent hosts "$host" > /dev/null
}

# Starts an engine in the namespace, on a copy of the images of another one that is stopped meanwhile. Layers never change, so they are linked.
# lane_engine <name> <run folder> <data folder> <data folder of the other engine> [command that starts it, as `nice …`]
lane_engine() {
  local name=$1 run=$2 data=$3 from=$4
  shift 4
  mkdir -p "$data"
  cp --archive --link "$from/overlay2" "$data/" || return 1
  find "$from" -mindepth 1 -maxdepth 1 ! -name overlay2 ! -name containers ! -name network ! -name engine-id -exec cp --archive {} "$data/" \; || return 1
  private_engine_start "$run" "$data" "$@" nsenter "--net=/run/netns/$name"
}

# Takes away what lane_network made; its engine is stopped by private_engine_stop before.
# lane_close <name> <number>
lane_close() {
  local name=$1 net=10.231.$2
  iptables -w 10 -t nat -D POSTROUTING -s "$net.0/24" ! -o "$name" -j MASQUERADE 2> /dev/null || true
  iptables -w 10 -D FORWARD -i "$name" -j ACCEPT 2> /dev/null || true
  iptables -w 10 -D FORWARD -o "$name" -j ACCEPT 2> /dev/null || true
  ip link delete "$name" 2> /dev/null || true
  ip netns delete "$name" 2> /dev/null || true
}
