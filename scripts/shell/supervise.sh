#!/usr/bin/env bash
# Keeps one program running on a machine without systemd: starts it again after a crash, ever more slowly when it keeps crashing, and
# keeps its log below a fixed size. Stopping the supervisor stops the program.
#   supervise.sh <folder> <name> <command> [argument …]
# writes <folder>/<name>.pid and <folder>/<name>.log (older lines in <name>.log.1).
set -u
folder=$1 name=$2
shift 2
log=$folder/$name.log
max_log_bytes=$((10 * 1024 * 1024)) keep_log_bytes=$((5 * 1024 * 1024))
longest_wait_s=60 healthy_after_s=60 stop_after_s=40

child='' stopping=no
say() { printf '%s supervisor: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*" >> "$log"; }

# shellcheck disable=SC2317 # the trap calls it
stop() {
  stopping=yes
  if [ -n "$child" ]; then kill -TERM "$child" 2> /dev/null; fi
}
trap stop TERM INT
trap '' HUP

# The program appends to the file, so it goes on at the new end after the file was cut.
bound_log() {
  if [ "$(stat --format %s "$log")" -le $max_log_bytes ]; then return; fi
  tail --bytes $keep_log_bytes "$log" > "$log.1"
  : > "$log"
}

# Waits until the program ends, looking at the log now and then. Sets `code`.
await_child() {
  local tick patience=0
  while kill -0 "$child" 2> /dev/null; do
    sleep 5 &
    tick=$!
    wait -n "$child" "$tick" 2> /dev/null
    kill "$tick" 2> /dev/null
    bound_log
    if [ $stopping = yes ]; then
      patience=$((patience + 5))
      if [ $patience -gt $stop_after_s ]; then say "$name does not stop; killing it"; kill -KILL "$child" 2> /dev/null; fi
    fi
  done
  wait "$child" 2> /dev/null
  code=$?
}

(umask 077 && mkdir -p "$folder")
touch "$log"
chmod 600 "$log"
# Nobody could stop a program whose supervisor is not known, as where the disk is full.
echo $$ > "$folder/$name.pid" || exit 1
wait_s=1
while [ $stopping = no ]; do
  started=$SECONDS
  "$@" >> "$log" 2>&1 < /dev/null &
  child=$!
  code=0
  await_child
  child=''
  if [ $stopping = yes ]; then break; fi
  # An upgrade ends the program on purpose, and a program that has put another one in its place ends with 75.
  if [ $((SECONDS - started)) -ge $healthy_after_s ] || [ $code -eq 0 ] || [ $code -eq 75 ]; then wait_s=1; fi
  say "$name ended with code $code; starting it again in $wait_s s"
  sleep "$wait_s" &
  wait $!
  wait_s=$((wait_s * 2 > longest_wait_s ? longest_wait_s : wait_s * 2))
done
say "$name was stopped"
# The last thing done: whoever waits for the file to go may remove the folder then.
rm -f "$folder/$name.pid"
