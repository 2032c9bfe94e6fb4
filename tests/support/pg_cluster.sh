#!/usr/bin/env bash
# pg_cluster.sh CMD…: runs CMD beside a private, throw-away PostgreSQL and returns its exit code.
#
#   OUTBOX_TEST_DSN      for CMD: superuser, unix socket only
#   OUTBOX_TEST_PGDATA   for CMD: data directory    OUTBOX_TEST_PGBIN  for CMD: server binaries
#   PG_BIN=DIR           server binaries to use     PG_FSYNC=on        a real flush, for crash tests
#   PG_OPTIONS="-c …"    further server options
#
# The server never runs as root. It is stopped and removed whatever happens; when CMD fails, the
# end of the server's log is printed.
set -euo pipefail

[[ $# -gt 0 ]] || { echo "usage: pg_cluster.sh CMD…" >&2; exit 2; }

bin=${PG_BIN:-}
if [[ -z $bin ]]; then
    bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
fi
if [[ -z $bin ]] && command -v pg_config > /dev/null; then
    bin=$(pg_config --bindir)
fi
if [[ ! -x $bin/initdb || ! -x $bin/pg_ctl ]]; then
    echo "pg_cluster.sh: no PostgreSQL server found (initdb, pg_ctl)." >&2
    echo "hint: apt-get install postgresql, or set PG_BIN to the directory of initdb" >&2
    exit 1
fi

# A short path: a unix socket's may have 107 bytes.
dir=$(mktemp -d /tmp/outbox-pg.XXXXXX)
as_owner=()
if [[ $(id -u) -eq 0 ]]; then
    if ! id postgres > /dev/null 2>&1; then
        rmdir "$dir"
        echo "pg_cluster.sh: running as root, and there is no user postgres to run the server." >&2
        echo "hint: apt-get install postgresql, or run the tests as another user" >&2
        exit 1
    fi
    chown postgres "$dir"
    as_owner=(runuser -u postgres --)
fi

cleanup() {
    code=$?
    trap - EXIT INT TERM HUP
    if [[ -f $dir/data/postmaster.pid ]]; then
        (cd / && "${as_owner[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop) > /dev/null 2>&1 || true
    fi
    if [[ $code -ne 0 && -f $dir/server.log ]]; then
        echo "--- last lines of the server's log ---" >&2
        tail -n "${PG_LOG_LINES:-40}" "$dir/server.log" >&2
    fi
    rm -rf "$dir"
    exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# From / because the server's user may not be able to enter the caller's directory.
(cd / && "${as_owner[@]}" "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 \
    --no-locale --no-sync --no-instructions) > "$dir/initdb.log" 2>&1 || {
    cat "$dir/initdb.log" >&2
    exit 1
}
cat >> "$dir/data/postgresql.conf" << CONF
listen_addresses = ''
unix_socket_directories = '$dir'
fsync = ${PG_FSYNC:-off}
full_page_writes = ${PG_FSYNC:-off}
max_connections = 100
max_prepared_transactions = 10
shared_buffers = 64MB
log_statement = none
log_line_prefix = '%m [%p] %d '
CONF
(cd / && "${as_owner[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 60 \
    -o "${PG_OPTIONS:-}" start) > /dev/null

export OUTBOX_TEST_DSN="host=$dir user=postgres dbname=postgres"
export OUTBOX_TEST_PGDATA="$dir/data" OUTBOX_TEST_PGBIN="$bin"
# In the background, so that a signal reaches the trap at once; wait passes the exit code on.
"$@" &
child=$!
trap 'kill -TERM $child 2> /dev/null; exit 143' TERM
trap 'kill -INT $child 2> /dev/null; exit 130' INT
wait "$child"
