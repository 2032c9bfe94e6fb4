#!/bin/sh
# The systemd unit: no word from `systemd-analyze verify` (it exits 0 on keys it does not know),
# and an exposure of at most 1.5 of 10. Works where systemd does not run.
set -eu

unit=$(cd "$(dirname "$0")/../.." && pwd)/config/outboxd.service
command -v systemd-analyze >/dev/null || {
    echo "systemd.sh: no systemd-analyze here; apt-get install systemd" >&2
    exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The binary need not be installed: a stand-in takes its place in a copy of the unit.
printf '#!/bin/sh\n' >"$scratch/outboxd"
chmod 755 "$scratch/outboxd"
sed "s|^ExecStart=/usr/bin/outboxd |ExecStart=$scratch/outboxd |" "$unit" >"$scratch/outboxd.service"
grep -q "^ExecStart=$scratch/outboxd run -c " "$scratch/outboxd.service" || {
    echo "systemd.sh: ExecStart is not /usr/bin/outboxd run -c …" >&2
    exit 1
}

# It reads the units of this machine, too; what it says of those is not ours.
systemd-analyze verify "$scratch/outboxd.service" 2>&1 |
    grep -vE '^(/usr)?/lib/systemd/system/|^/etc/systemd/system/' >"$scratch/said" || true
if [ -s "$scratch/said" ]; then
    echo "systemd.sh: systemd-analyze verify says:" >&2
    cat "$scratch/said" >&2
    exit 1
fi

if ! systemd-analyze security --offline=true --no-pager --threshold=15 "$scratch/outboxd.service" \
    >"$scratch/security" 2>&1; then
    grep -v '✓' "$scratch/security" >&2
    echo "systemd.sh: the unit is exposed by more than 1.5" >&2
    exit 1
fi

# TimeoutStopSec must leave time to drain: worker.drain_timeout of the example.
seconds() { sed -n "s/^ *$1\([0-9][0-9]*\)s.*/\1/p" "$2"; }
stop=$(seconds 'TimeoutStopSec=' "$unit")
drain=$(seconds 'drain_timeout: ' "$(dirname "$unit")/example.yaml")
if [ "${stop:-0}" -le "${drain:-9999}" ]; then
    echo "systemd.sh: TimeoutStopSec ($stop s) must be above drain_timeout ($drain s)" >&2
    exit 1
fi

grep 'Overall exposure' "$scratch/security" | sed 's/^[^A-Za-z]*//'
