#!/usr/bin/env bash
# `npm test`: everything that proves this checkout, from a bare clone: dependencies, types, engine, images, build, then all tests.
#   npm test                      all three projects: unit, engine, e2e
#   npm test -- unit              one project, or several
#   npm test -- unit test/kernel  only files whose path contains the text
#   PORTREEVE_TEST_LANES=1 npm test    what needs an engine one file after the other, in place of three lanes side by side
#   PORTREEVE_PROGRAM=$PWD/dist/portreeve npm test -- e2e    the same against the one-file program of `npm run binary`
# The last line is `N passed, N failed`, with `, N skipped` when tests were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/shell/engine.sh
. scripts/shell/engine.sh
# shellcheck source=scripts/shell/lane.sh
. scripts/shell/lane.sh

projects=() filters=()
for argument in "$@"; do
  case $argument in
    unit | engine | e2e) projects+=("$argument") ;;
    -*) echo "npm test takes names of projects (unit, engine, e2e) and parts of paths; $argument is neither." >&2; exit 2 ;;
    *) filters+=("$argument") ;;
  esac
done
if [ ${#projects[@]} -eq 0 ]; then projects=(unit engine e2e); fi
needs() { case " ${projects[*]} " in *" $1 "*) return 0 ;; *) return 1 ;; esac }

reports=$(mktemp -d "${TMPDIR:-/tmp}/portreeve-test-XXXXXX")
PACKAGE_LOG=$reports/packages.log
# Names of runs that have to leave results; a run that vanished is no green one.
expected=()
unit_run='' sources_run='' packages_run='' lane_tests=()
# Of each lane beside the first one, which is this machine's own network: its name, its number, and its engine's folders.
lanes=() lane_numbers=() lane_runs=() lane_datas=()
# What waits for a processor rather than for somebody: servers and browsers under test, and whoever watches them, go first.
gives_way=(nice -n 5)
memory_disk=''
engine_run='' engine_data_usual=${PORTREEVE_TEST_ENGINE_DATA:-/var/lib/portreeve-test-engine}
engine_data=$engine_data_usual
# shellcheck disable=SC2317 # the trap calls it
stop_first_engine() {
  if [ -z "$engine_run" ]; then return; fi
  private_engine_stop "$engine_run" "$engine_data"
  # A clone made for one run leaves nothing behind; a developer keeps the images for the next run.
  if [ "${CI:-}" = true ] || [ "$engine_data" != "$engine_data_usual" ]; then rm -rf "$engine_data"; fi
}
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
  local run
  for run in $unit_run $sources_run $packages_run "${lane_tests[@]}"; do kill -- "-$run" 2> /dev/null || true; done
  # Engines take their time to end, so they end side by side.
  stop_first_engine &
  run=$!
  close_lanes
  wait "$run" || true
  if [ -n "$memory_disk" ]; then umount --lazy "$memory_disk" && rmdir "$memory_disk" || true; fi
  rm -rf "$reports"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

# Prints the tally and ends: a step that everything after it needs has failed.
give_up() { node scripts/test-report.ts "failed:$1"; exit 1; }

# Files of tests and of the engine in memory, where CI has enough of it: nothing of them is kept, and a journal and a disk cost a tenth of
# all time. Its path is short, since sockets lie in it. Where it cannot be made, the disk does.
open_memory_disk() {
  local available
  if [ "${CI:-}" != true ] || [ "$(id -u)" -ne 0 ] || [ -n "${PORTREEVE_TEST_ENGINE_DATA:-}" ]; then return; fi
  available=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  if [ "$available" -lt 18 ]; then return; fi
  memory_disk=$(mktemp -d /tmp/ptt-XXXXXX)
  if ! mount -t tmpfs -o size=14g,mode=1777 portreeve-tests "$memory_disk"; then rmdir "$memory_disk"; memory_disk=''; return; fi
  export TMPDIR=$memory_disk
  engine_data=$memory_disk/engine
}

install_dependencies() {
  if [ -e node_modules/.package-lock.json ] && ! [ package-lock.json -nt node_modules/.package-lock.json ]; then return; fi
  step 'installing dependencies'
  npm ci --no-audit --no-fund
}

# Installs packages of which none may start what it brings: no SSH server is wanted, and an engine of ours is stopped again after the tests.
install_unstarted() {
  if [ "$(id -u)" -ne 0 ]; then echo "Not installed, and only root can install it: $*" >&2; return 1; fi
  local policy=/usr/sbin/policy-rc.d had_policy=yes result=0
  if ! [ -e $policy ]; then had_policy=no; printf '#!/bin/sh\nexit 101\n' > $policy; chmod 755 $policy; fi
  install_packages "$@" || { result=1; tail -n 20 "$PACKAGE_LOG" >&2; }
  if [ $had_policy = no ]; then rm -f $policy; fi
  return $result
}

# What the tests of deploy keys, certificates and DNS run against: a real SSH server, real authorities, a real name server, a real browser. What they
# and the images are made with comes along: one call of the package manager takes less time than three.
install_tools() {
  local missing=()
  command -v openssl > /dev/null || missing+=(openssl)
  command -v curl > /dev/null || missing+=(curl)
  [ -x /usr/sbin/sshd ] || missing+=(openssh-server)
  command -v pebble > /dev/null || missing+=(pebble)
  [ -x /usr/sbin/named ] || missing+=(bind9)
  command -v nsupdate > /dev/null || missing+=(bind9-dnsutils)
  if needs e2e; then [ -x /usr/bin/chromium-headless-shell ] || missing+=(chromium-headless-shell); fi
  if { needs engine || needs e2e; } && ! engine_answers; then
    command -v dockerd > /dev/null || missing+=(docker.io iptables)
    command -v mmdebstrap > /dev/null || missing+=(mmdebstrap)
  fi
  if [ ${#missing[@]} -eq 0 ]; then return; fi
  step "installing ${missing[*]}"
  install_unstarted "${missing[@]}"
}
# They wait for the network and the disk, as the installation of dependencies does.
start_tools() {
  set -m
  install_tools > "$reports/tools.log" 2>&1 &
  packages_run=$!
  set +m
}
await_tools() {
  local result=0
  wait "$packages_run" || result=$?
  packages_run=''
  cat "$reports/tools.log"
  return $result
}

ensure_engine() {
  if engine_answers; then return; fi
  step 'starting a container engine for the tests'
  local earlier
  for earlier in /run/portreeve-test-engine-*; do
    [ -e "$earlier/owner.pid" ] || continue
    # A run that is still going keeps its engine, and this one takes other folders; what a killed run left behind is stopped.
    if kill -0 "$(cat "$earlier/owner.pid")" 2> /dev/null; then engine_data=$engine_data-$$; continue; fi
    remove_leftovers "$earlier"
  done
  start_engine
}

# What a run that was killed left behind: its engine, and of a second lane also the images and the network.
# remove_leftovers <run folder>
remove_leftovers() {
  local data lane_of
  data=$(cat "$1/data") lane_of=$(cat "$1/lane" 2> /dev/null || true)
  private_engine_stop "$1" "$data"
  case $data in /tmp/ptt-*/*) umount --lazy "${data%/*}" 2> /dev/null && rmdir "${data%/*}" || true ;; esac
  if [ -z "$lane_of" ]; then return; fi
  # shellcheck disable=SC2086 # a name and a number
  lane_close $lane_of
  rm -rf "$data" "$1"
}

start_engine() {
  engine_run=$(mktemp -d /run/portreeve-test-engine-XXXXXX)
  echo $$ > "$engine_run/owner.pid"
  echo "$engine_data" > "$engine_run/data"
  private_engine_start "$engine_run" "$engine_data" "${gives_way[@]}"
  export DOCKER_HOST="unix://$engine_run/docker.sock"
}

# Opens the other lanes of the tests that need an engine; fails where there can be only one.
open_lanes() {
  local count=${PORTREEVE_TEST_LANES:-3} index opened=0
  if [ "$count" -lt 2 ] || [ ${#filters[@]} -gt 0 ] || [ -z "$engine_run" ] || [ "$(id -u)" -ne 0 ]; then return 1; fi
  command -v ip > /dev/null && command -v nsenter > /dev/null || return 1
  step "opening $((count - 1)) more lanes"
  for ((index = 2; index <= count; index++)); do add_lane || opened=1; done
  if [ $opened -eq 0 ]; then
    private_engine_stop "$engine_run" "$engine_data"
    for index in "${!lanes[@]}"; do
      lane_engine "${lanes[index]}" "${lane_runs[index]}" "${lane_datas[index]}" "$engine_data" "${gives_way[@]}" || opened=1
    done
    start_engine || give_up 'The container engine did not start again.'
  fi
  if [ $opened -ne 0 ]; then close_lanes; return 1; fi
}

# Makes the network of one more lane, and the folders of its engine.
add_lane() {
  local number=$((RANDOM % 250)) run
  while [ -e "/run/netns/ptr-lane-$number" ]; do number=$(((number + 1) % 250)); done
  run=$(mktemp -d /run/portreeve-test-engine-XXXXXX)
  lanes+=("ptr-lane-$number") lane_numbers+=("$number") lane_runs+=("$run") lane_datas+=("$engine_data-lane-$number-$$")
  echo $$ > "$run/owner.pid"
  echo "$engine_data-lane-$number-$$" > "$run/data"
  echo "ptr-lane-$number $number" > "$run/lane"
  lane_network "ptr-lane-$number" "$number" && lane_finds_names "ptr-lane-$number"
}

close_lanes() {
  local index stops=()
  for index in "${!lanes[@]}"; do
    (
      private_engine_stop "${lane_runs[index]}" "${lane_datas[index]}" || true
      lane_close "${lanes[index]}" "${lane_numbers[index]}"
      rm -rf "${lane_runs[index]}" "${lane_datas[index]}"
    ) &
    stops+=($!)
  done
  if [ ${#stops[@]} -gt 0 ]; then wait "${stops[@]}" || true; fi
  lanes=() lane_numbers=() lane_runs=() lane_datas=()
}

# Seconds that one project may take: a test that hangs must not cost the results of the others.
limit_s() { case $1 in engine | engine-build) echo 1200 ;; *) echo 2700 ;; esac }

# What runs a command in the lane of these tests; nothing for the first one.
inside=()

# Runs tests and keeps what they came to under <name>; the arguments after it say which.
# run_tests <name> <arguments of vitest…>
run_tests() {
  local name=$1 status=0 report=$reports/$1.json
  shift
  step "tests: $name"
  # In the foreground, so that a signal to this run reaches vitest as well.
  TEST_SECONDS=$reports/$name.seconds "${inside[@]}" timeout --foreground --kill-after=30 "$(limit_s "$name")" \
    vitest run "$@" --passWithNoTests --reporter=default --reporter=./scripts/retried-reporter.ts \
    --reporter=./scripts/seconds-reporter.ts --reporter=json --outputFile.json="$report" "${filters[@]}" < /dev/null || status=$?
  # As lines of a file, since a run in the background cannot add to a list of this shell.
  {
    if [ $status -eq 124 ] || [ $status -eq 137 ]; then echo "failed:The tests of $name did not end within $(limit_s "$name") s."; fi
    if [ -e "$report" ]; then
      echo "$report"
      # A run that ends badly although its report says that all is well (a crash at the very end) must not be green.
      if [ $status -ne 0 ] && node scripts/test-report.ts "$report" > /dev/null; then echo "failed:vitest ended with code $status after $name."; fi
    else
      echo "failed:vitest ended with code $status and left no report of $name."
    fi
  } > "$reports/$name.results"
}

# What measures the engine's builds, before the lanes: their groups are shared by all engines of the machine. Tests of units make none.
run_engine_build() {
  if ! needs engine; then return; fi
  expected+=(engine-build)
  run_tests engine-build --project engine test/engine/engine-build test/engine/engine-restart
}

# The tests that need an engine in as many parts as there are lanes, side by side: they wait for half of their time.
run_lanes() {
  local chosen=() project index count=$((${#lanes[@]} + 1))
  for project in engine e2e; do if needs $project; then chosen+=(--project "$project"); fi; done
  chosen+=(--exclude 'test/engine/engine-build*' --exclude 'test/engine/engine-restart*')
  for ((index = 1; index <= count; index++)); do expected+=("lane-$index"); done
  # With process groups of their own, so that a signal ends all of them.
  set -m
  for index in "${!lanes[@]}"; do
    (
      inside=(nsenter "--net=/run/netns/${lanes[index]}")
      export DOCKER_HOST=unix://${lane_runs[index]}/docker.sock
      run_tests "lane-$((index + 2))" "${chosen[@]}" "--shard=$((index + 2))/$count"
    ) > "$reports/lane-$((index + 2)).log" 2>&1 &
    lane_tests+=($!)
  done
  set +m
  run_tests lane-1 "${chosen[@]}" "--shard=1/$count"
  for index in "${!lane_tests[@]}"; do
    wait "${lane_tests[index]}" || true
    cat "$reports/lane-$((index + 2)).log"
  done
  lane_tests=()
}

# Format and types, as lines of results like those of tests.
check_sources() {
  local bad=()
  step 'checking format and types'
  biome check . || bad+=('failed:The sources are not as `npm run format` writes them.')
  bash scripts/shell/types.sh || bad+=('failed:The types do not check.')
  printf '%s\n' "${bad[@]}" | sed '/^$/d' > "$reports/sources.results"
}
build_server() {
  step 'building the server'
  nitro build
}
# They keep one core busy and wait for nothing, so that they go beside what does. The build is last: it writes files that types are read from.
start_sources() {
  expected+=(sources)
  set -m
  {
    check_sources
    if ! needs e2e || build_server; then touch "$reports/built"; fi
  } > "$reports/sources.log" 2>&1 &
  sources_run=$!
  set +m
}
await_sources() {
  wait "$sources_run" || true
  sources_run=''
  cat "$reports/sources.log"
}

# Tests that need no engine take the time that all others leave, while containers start and stop. Making images and checking sources leave
# none, and all that needs an engine waits for the images, so it begins after them.
start_unit() {
  expected+=(unit)
  set -m
  (
    inside=(nice -n 5)
    run_tests unit --project unit
  ) > "$reports/unit.log" 2>&1 &
  unit_run=$!
  set +m
}
await_unit() {
  if [ -z "$unit_run" ]; then return; fi
  wait "$unit_run" || true
  unit_run=''
  cat "$reports/unit.log"
}

open_memory_disk
start_tools
install_dependencies || { echo 'npm ci failed.' >&2; echo '0 passed, 1 failed'; exit 1; }
export PATH="$PWD/node_modules/.bin:$PATH"

results=()
node scripts/dashboard-client.ts || results+=('failed:The types of the API cannot be written.')
start_sources

await_tools || results+=('failed:The programs that tests run against could not be installed.')
if needs engine || needs e2e; then
  ensure_engine || give_up 'There is no container engine.'
  step 'images'
  node scripts/images.ts || results+=('failed:Not all images could be made.')
fi
if needs unit && { needs engine || needs e2e; }; then start_unit; fi
await_sources
if ! [ -e "$reports/built" ]; then give_up 'The server does not build.'; fi
has_lanes=no
if { needs engine || needs e2e; } && open_lanes; then
  has_lanes=yes
  run_engine_build
  run_lanes
fi
await_unit
if [ $has_lanes = no ]; then
  for project in "${projects[@]}"; do
    if [ -e "$reports/$project.results" ]; then continue; fi
    expected+=("$project")
    run_tests "$project" --project "$project"
  done
fi
for name in "${expected[@]}"; do
  if [ -e "$reports/$name.results" ]; then mapfile -t -O "${#results[@]}" results < "$reports/$name.results"
  else results+=("failed:The tests of $name left no results."); fi
done

step 'result'
# Which parts took how long, and the files that the lanes are shared by.
for name in "${expected[@]}"; do
  if [ -e "$reports/$name.seconds" ]; then awk -v name="$name" '{ s += $1 } END { printf "%s: %d files, %d s\n", name, NR, s }' "$reports/$name.seconds"; fi
done
longest=$(cat "$reports"/{engine,e2e,lane-}*.seconds 2> /dev/null | sort -rn | head -n 40 | sed 's# test/# #; s#\.test\.ts$##' | paste -sd, || true)
if [ -n "$longest" ]; then echo "Seconds of the longest files: ${longest//,/, }"; fi
status=0
node scripts/test-report.ts "${results[@]}" || status=$?
exit $status
