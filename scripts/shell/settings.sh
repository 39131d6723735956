# shellcheck shell=bash
# The settings an installation was given, kept in one file that systemd and bash read alike. Source it.

# Names of the environment variables that are handed on to the server.
setting_names() { compgen -e | grep -E '^(PORT|HOST|DOCKER_HOST|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|PORTREEVE_[A-Z0-9_]+)$' | sort; }

# Refuses values of this environment that the lines of the file cannot hold: a key that got lost on the way would be another one. Needs `fail`.
require_single_lines() {
  local name
  while IFS= read -r name; do
    case ${!name} in *[$'\n\r']*) fail "$name must be one line." ;; esac
  done < <(setting_names)
}

# setting_line <name> <value>: one line of the file, quoted for both readers.
setting_line() {
  local value=$2
  value=${value//\\/\\\\}
  value=${value//\"/\\\"}
  value=${value//\$/\\\$}
  value=${value//\`/\\\`}
  printf '%s="%s"\n' "$1" "$value"
}

# settings_load <file>: takes over what an earlier call stored, where the environment of this call says nothing else.
settings_load() {
  local file=$1 name
  [ -e "$file" ] || return 0
  while IFS= read -r name; do
    if [ -n "${!name+set}" ]; then continue; fi
    # Only our own lines come out of the file, which nobody but root can write.
    # shellcheck disable=SC1090
    value=$(. "$file" && printf '%s' "${!name}")
    export "$name=$value"
  done < <(sed -nE 's/^([A-Z][A-Z0-9_]*)=".*"$/\1/p' "$file")
}

# settings_store <file>: writes the settings of this environment; succeeds when the file changed, fails when it did not need to. An empty
# value takes a setting away. Needs `fail`.
settings_store() {
  local file=$1 name fresh
  fresh=$(while IFS= read -r name; do if [ -n "${!name}" ]; then setting_line "$name" "${!name}"; fi; done < <(setting_names))
  if [ -e "$file" ] && [ "$(cat "$file")" = "$fresh" ]; then return 1; fi
  # Callers ask for the answer, which lets commands fail in silence here.
  (umask 077 && printf '%s\n' "$fresh" > "$file.new") || fail "The settings cannot be written to $file; is the disk full?"
  if [ -e "$file" ]; then ln -f "$file" "$file.before"; fi
  mv "$file.new" "$file"
}

# settings_take_back <file>: undoes the last settings_store, because Portreeve did not start with what it wrote; fails when there is nothing
# to go back to.
settings_take_back() {
  [ -e "$1.before" ] && mv "$1.before" "$1"
}

# data_dir_recall <file>: the data folder of the installation that was made from this checkout, if it is not the default one.
data_dir_recall() {
  if [ -r "$1" ]; then cat "$1"; fi
}

# data_dir_remember <file> <data folder> <default folder>: so that a later call without it finds the same installation.
data_dir_remember() {
  if [ "$2" = "$3" ]; then
    rm -f "$1"
  elif [ "$(data_dir_recall "$1")" != "$2" ]; then
    printf '%s\n' "$2" > "$1.new"
    mv "$1.new" "$1"
  fi
}
