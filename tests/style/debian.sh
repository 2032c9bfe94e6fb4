#!/usr/bin/env bash
# A fresh machine that has only git: clones HEAD into a new Debian root and runs a command there.
#   debian.sh bookworm                 ./dev test on Debian 12
#   debian.sh trixie ./dev build       Debian 13: g++ 14, Boost 1.83, libpqxx 7.10, Catch2 3
# Needs root and debootstrap. The root stays in build/SUITE; remove it to be fresh again.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. tests/style/chroot.sh

suite=${1:?debian.sh SUITE [COMMAND…]}
shift
[ $# != 0 ] || set -- ./dev test
command -v debootstrap >/dev/null || { echo "debian.sh: debootstrap is missing" >&2; exit 2; }

root=$PWD/build/$suite/root
debian_root "$suite" "$root"
if [ -e "$root/src/.git" ]; then
    git -C "$root/src" pull -q --ff-only
else
    git clone -q . "$root/src"
fi

mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
trap 'umount -l "$root/proc" "$root/dev"' EXIT
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# This machine's way to its npm registry holds inside as well.
npm=()
if command -v npm >/dev/null; then
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    npm=("npm_config_registry=$(npm config get registry)" npm_config_cafile=/etc/ssl/certs/ca-certificates.crt)
fi
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CI=true "${npm[@]}" \
    bash -c 'cd /src && "$@"' - "$@" </dev/null
