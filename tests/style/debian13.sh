#!/usr/bin/env bash
# Builds the tree on Debian 13 (g++ 14, Boost 1.83, libpqxx 7.10, Catch2 3) in a chroot, and runs the
# unit tests there. Needs root and debootstrap. `debian13.sh [TARGET…]`; without, everything.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. tests/style/chroot.sh

command -v debootstrap >/dev/null || { echo "debian13.sh: debootstrap is missing" >&2; exit 2; }
root=$PWD/build/debian13/root
mkdir -p build/debian13
debian_root trixie "$root"

mkdir -p "$root/src"
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
trap 'umount -l "$root/proc" "$root/dev"' EXIT
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# The sources as they stand in the work tree, without what is not in git; build/ stays there.
git ls-files -z --cached --others --exclude-standard | tar --null -T - -c --ignore-failed-read 2>/dev/null |
    tar -x -C "$root/src"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    bash -c "cd /src && $1" </dev/null; }
inside "./dev packages"
inside "[ -e build/release/build.ninja ] || cmake --preset release"
inside "cmake --build build/release -j $(nproc) -- -k 0 $*"
if [ $# = 0 ]; then inside "ctest --test-dir build/release -L unit --output-on-failure"; fi
