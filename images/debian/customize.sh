#!/bin/sh
# Runs outside the new system, whose root is the only argument, before it is packed.
set -eu
root=$1

# The machine's certificates: a closed network often has a mirror or registry with a certificate of its own authority.
mkdir -p "$root/etc/ssl/certs" "$root/usr/local/share/ca-certificates"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
for certificate in /usr/local/share/ca-certificates/*.crt; do
  if [ -e "$certificate" ]; then cp "$certificate" "$root/usr/local/share/ca-certificates/"; fi
done

# Images hold no manuals, install nothing that was not asked for, and start no services while packages are installed.
printf 'path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\npath-exclude=/usr/share/locale/*\n' > "$root/etc/dpkg/dpkg.cfg.d/portreeve"
echo force-unsafe-io >> "$root/etc/dpkg/dpkg.cfg.d/portreeve"
cat > "$root/etc/apt/apt.conf.d/99portreeve" <<'SETTINGS'
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "3";
SETTINGS
printf '%s\n' "${PORTREEVE_APT_PROXY:-}" >> "$root/etc/apt/apt.conf.d/99portreeve"
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

# The container gets these from the engine; the machine's own would be stale or tell its name.
rm -f "$root/etc/hostname" "$root/etc/resolv.conf" "$root/etc/machine-id"
