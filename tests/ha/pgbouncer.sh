#!/usr/bin/env bash
# Two daemons through PgBouncer in transaction mode with two server connections:
# tests/ha/pgbouncer.sh [OUTBOXD]. Nothing listens but on loopback and unix sockets.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PATH=$PATH:/usr/sbin
command -v pgbouncer >/dev/null || { echo "no pgbouncer here: apt-get install pgbouncer" >&2; exit 1; }
[ -d tests/e2e/node_modules ] || (cd tests/e2e && npm ci --no-audit --no-fund --silent)
OUTBOXD=$(readlink -f "${1:-${OUTBOXD:-build/release/outboxd}}") exec node tests/ha/pgbouncer.mjs
