#!/usr/bin/env bash
# Tries the Dockerfile without an engine or a registry: buildah with chroot isolation, on a base image
# made by debootstrap under the name that the Dockerfile asks for. Needs root. Some minutes.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. tests/style/chroot.sh

for program in buildah debootstrap; do
    command -v $program >/dev/null || { echo "docker.sh: $program is missing" >&2; exit 2; }
done
mkdir -p build/docker
image() { buildah --root "$PWD/build/docker/storage" --runroot "$PWD/build/docker/run" --storage-driver vfs "$@"; }

base=docker.io/library/debian:bookworm-slim
if ! image inspect --type image $base >/dev/null 2>&1; then
    debian_root bookworm build/docker/bookworm
    from=$(image from scratch)
    image add -q "$from" build/docker/bookworm / >/dev/null
    image commit -q "$from" $base >/dev/null
    image rm "$from" >/dev/null
fi

# What this machine has compiled before need not be compiled again.
cache=()
if command -v ccache >/dev/null; then cache=(-v "$(ccache -k cache_dir):/root/.cache/ccache"); fi
image bud --format docker --pull-never --isolation chroot "${cache[@]}" -t outboxd:try .

config=$(image inspect --type image outboxd:try)
grep -q '"User": "outboxd"' <<<"$config" || { echo "the image runs as root" >&2; exit 1; }
grep -q '"StopSignal": "SIGTERM"' <<<"$config" || { echo "the image has no STOPSIGNAL" >&2; exit 1; }

container=$(image from --pull-never outboxd:try)
trap 'image rm "$container" >/dev/null' EXIT
image run --isolation chroot "$container" -- /usr/bin/outboxd --version
# Everything the loader needs is there, and a configuration mistake ends with its own exit code.
! image run --isolation chroot "$container" -- ldd /usr/bin/outboxd | grep 'not found'
code=0
image run --isolation chroot "$container" -- /usr/bin/outboxd check-config /etc/hostname || code=$?
[ $code = 3 ] || { echo "check-config of nonsense exits $code, not 3" >&2; exit 1; }
echo "docker: the image builds, runs as outboxd, and stops on SIGTERM"
