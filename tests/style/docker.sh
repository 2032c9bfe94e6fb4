#!/usr/bin/env bash
# Builds the Dockerfile and runs the image beside a Postgres, without an engine or a registry: buildah with
# chroot isolation, on a base image made by debootstrap under the name that the Dockerfile asks for. Needs
# root. Minutes the first time.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. tests/style/chroot.sh

limit=157286400  # 150 MiB over the base
die() { echo "docker.sh: $*" >&2; exit 1; }
for program in buildah debootstrap curl node; do
    command -v $program >/dev/null || die "$program is missing"
done
mkdir -p build/docker
image() { buildah --root "$PWD/build/docker/storage" --runroot "$PWD/build/docker/run" --storage-driver vfs "$@"; }

if [ "${1:-}" != --run ]; then
    base=docker.io/library/debian:bookworm-slim
    if ! image inspect --type image $base >/dev/null 2>&1; then
        # As small as the original: what the image brings itself must count.
        debian_root bookworm build/docker/bookworm ''
        from=$(image from scratch)
        image add -q "$from" build/docker/bookworm / >/dev/null
        image commit -q "$from" $base >/dev/null
        image rm "$from" >/dev/null
    fi

    # What this machine has compiled before need not be compiled again.
    cache=()
    if command -v ccache >/dev/null; then cache=(-v "$(ccache -k cache_dir):/root/.cache/ccache"); fi
    image bud --format docker --pull-never --isolation chroot "${cache[@]}" -t outboxd:try .
    echo "ok   image: builds"
    over=$(($(image images --json | node -e '
        const all = JSON.parse(require("fs").readFileSync(0));
        const of = (name) => all.find((i) => (i.names ?? []).some((n) => n.includes(name)));
        const bytes = (text) => { const [, n, unit] = /([\d.]+) ?([KMG]?B)/.exec(text); return Math.round(n * { B: 1, KB: 1e3, MB: 1e6, GB: 1e9 }[unit]); };
        console.log(`${bytes(of("outboxd:try").size)}-${bytes(of("bookworm-slim").size)}`);')))
    [ $over -lt $limit ] || die "the image is $over bytes over its base, more than $limit"
    echo "ok   image: $((over / 1000000)) MB over its base"
    exec tests/support/pg_cluster.sh tests/style/docker.sh --run
fi

# --- the image beside a Postgres ----------------------------------------------------------------
config=$(image inspect --type image outboxd:try)
user=$(node -e 'console.log(JSON.parse(require("fs").readFileSync(0)).Docker.config.User)' <<<"$config")
[[ $user =~ ^[1-9][0-9]*(:[0-9]+)?$ ]] || die "the image runs as '$user', not as a number that is not root"
grep -q '"StopSignal": "SIGTERM"' <<<"$config" || die "the image has no STOPSIGNAL"

container=$(image from --pull-never outboxd:try)
scratch=$(mktemp -d /tmp/outboxd-image.XXXXXX)
runner=
clean() {
    [ -z "$runner" ] || kill "$runner" 2>/dev/null || true
    rm -rf "$scratch"
    image rm "$container" >/dev/null
}
trap clean EXIT
socket=${OUTBOX_TEST_DSN#host=}
socket=${socket%% *}
chmod 755 "$socket" "$scratch"
inside() {
    image run --isolation chroot --env "OUTBOXD_DATABASE=host=/pg user=postgres dbname=postgres" \
        -v "$socket:/pg" -v "$scratch:/etc/outboxd:ro" "$container" -- "$@"
}
inside /usr/bin/outboxd --version
[ "$(inside id -u)" = "${user%%:*}" ] || die "it runs as $(inside id -u)"
# Everything the loader needs is there, and a configuration mistake ends with its own exit code.
! inside ldd /usr/bin/outboxd | grep 'not found' || die "a library is missing"
code=0
inside /usr/bin/outboxd check-config /etc/hostname 2>/dev/null || code=$?
[ $code = 3 ] || die "check-config of nonsense exits $code, not 3"
echo "ok   image: runs as user $user"

port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
cat >"$scratch/outboxd.yaml" <<YAML
version: 1
database: { dsn: "\${env:OUTBOXD_DATABASE}" }
admin: { listen: "127.0.0.1:$port" }
tools: { note: { description: A line in the log., effect: read, execute: { type: log } } }
YAML
chmod 644 "$scratch/outboxd.yaml"
inside /usr/bin/outboxd migrate >/dev/null
# The words of ENTRYPOINT, CMD and HEALTHCHECK, as an engine would run them; the port is this machine's.
words() { node -e '
    const c = JSON.parse(require("fs").readFileSync(0)).Docker.config;
    const words = process.argv[1] === "health" ? c.Healthcheck.Test.slice(1) : [...c.Entrypoint, ...c.Cmd];
    process.stdout.write(words.map((w) => w + "\0").join(""));' "$1" <<<"$config"; }
mapfile -d '' -t start < <(words start)
mapfile -d '' -t health < <(words health | sed "s|/9464|/$port|")
! inside "${health[@]}" 2>/dev/null || die "the health check passes before anything runs"
inside "${start[@]}" >"$scratch/log" 2>&1 &
runner=$!
for _ in $(seq 300); do
    [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/readyz")" != 200 ] || break
    kill -0 $runner 2>/dev/null || { cat "$scratch/log" >&2; die "the daemon ended"; }
    sleep 0.1
done
inside "${health[@]}" || die "the health check fails while the daemon runs"
inside /usr/bin/outboxd enqueue note --arguments '{"text": "hello"}' --operation-id first --wait 30s | grep -q succeeded ||
    die "an operation does not succeed"
echo "ok   image: serves an operation, its health check passes"

# What an engine sends to process 1: the daemon below buildah's own processes.
descendants() { local child; for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do echo "$child"; descendants "$child"; done; }
daemon=$(for pid in $(descendants $runner); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = outboxd ] && echo "$pid"; done | head -n 1)
[ -n "$daemon" ] || die "no daemon among the processes of the container"
kill -TERM "$daemon"
code=0
wait $runner || code=$?
runner=
[ $code = 0 ] || die "STOPSIGNAL ends it with exit code $code"
echo "ok   image: stops on SIGTERM with exit code 0"
