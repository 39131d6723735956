#!/bin/sh
# Unpacks a Go toolchain that Debian packages for a newer release into /usr/local/go. The system around it stays as old as the base, so
# that binaries linked against its C library run on the runtime image of the same release.
set -eu
wanted=${1:?name the version of Go to look for first}
mirror=$(awk '$1 == "deb" { sub(/\/$/, "", $2); print $2; exit }' /etc/apt/sources.list)
printf 'deb %s trixie main\n' "$mirror" > /etc/apt/sources.list.d/go.list
if curl --silent --fail --location --output /dev/null "$mirror/dists/trixie-backports/InRelease"; then
  printf 'deb %s trixie-backports main\n' "$mirror" >> /etc/apt/sources.list.d/go.list
fi
# The newer release is only looked at for Go: the base stays what it is.
printf 'Package: *\nPin: release n=trixie*\nPin-Priority: 100\n' > /etc/apt/preferences.d/go
apt-get update -q
versions=$(apt-cache pkgnames golang-1. | sed -n 's/^golang-\(1\.[0-9]*\)-go$/\1/p' | sort -V)
version=$(echo "$versions" | grep -x "$wanted" || echo "$versions" | tail -n 1)

scratch=$(mktemp -d)
chmod 755 "$scratch"
cd "$scratch"
apt-get download "golang-$version-go" "golang-$version-src"
for archive in ./*.deb; do dpkg-deb --extract "$archive" root; done
# Debian spreads the tree over two folders with links between them; Go finds its own root when it is one folder.
mkdir -p /usr/local/go
cp -a "root/usr/share/go-$version/." /usr/local/go/
cd "root/usr/lib/go-$version"
find . ! -type d ! -type l -exec cp --parents --preserve=mode,timestamps --target-directory /usr/local/go {} +
cd /
rm -rf "$scratch" /etc/apt/sources.list.d/go.list /etc/apt/preferences.d/go /var/lib/apt/lists/* /var/cache/apt/*.bin /usr/local/go/test /usr/local/go/api
# Proves that compiler and assembler are whole, with a package of the standard library that is written in both and needs few others.
GOCACHE=/tmp/go-cache /usr/local/go/bin/go build internal/bytealg
rm -rf /tmp/go-cache
/usr/local/go/bin/go version
