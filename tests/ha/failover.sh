#!/usr/bin/env bash
# A primary killed under load and its standby promoted, synchronous and asynchronous, for real:
# tests/ha/failover.sh [OUTBOXD]. About a minute; nothing listens but on loopback and unix sockets.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ -d tests/e2e/node_modules ] || (cd tests/e2e && npm ci --no-audit --no-fund --silent)
OUTBOXD=$(readlink -f "${1:-${OUTBOXD:-build/release/outboxd}}") exec node tests/ha/failover.mjs
