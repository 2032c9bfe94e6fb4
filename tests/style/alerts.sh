#!/usr/bin/env bash
# The alert rules: valid, tested in a world where they fire and in one where they do not, about
# metrics that the daemon has, and each with its section in the operators' guide.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
command -v promtool >/dev/null ||
    { echo "promtool is missing: apt-get install prometheus (./dev test does it)" >&2; exit 1; }

promtool check rules config/alerts/*.rules.yml
promtool test rules tests/alerts/*.test.yml

failed=0
complain() { echo "alerts: $*" >&2; failed=1; }

# Names with a colon are recorded by the rules themselves.
for name in $(grep -ohE '\boutboxd_[a-z_]+' config/alerts/*.rules.yml tests/alerts/*.test.yml | sort -u); do
    grep -q "\"$name\"" daemon/metric_families.cpp || complain "no such metric: $name"
done
for name in $(grep -ohE 'outboxd:[a-z_]+' config/alerts/outboxd.rules.yml | sort -u); do
    grep -q "record: $name" config/alerts/*.rules.yml || complain "nobody records $name"
done
for alert in $(sed -n 's/.*- alert: //p' config/alerts/outboxd.rules.yml); do
    # The lines of one test: its name, when, and what was expected.
    grep -hA2 "alertname: $alert\$" tests/alerts/*.test.yml | grep -q 'exp_alerts: \[\]' ||
        complain "$alert is never tested where it must not fire"
    grep -hA3 "alertname: $alert\$" tests/alerts/*.test.yml | grep -q 'exp_labels' ||
        complain "$alert is never tested where it must fire"
    grep -q "^### $alert\$" docs/operators.md || complain "$alert has no section in docs/operators.md"
    grep -A12 "alert: $alert\$" config/alerts/outboxd.rules.yml |
        grep -qi "runbook: docs/operators.md#$alert\$" || complain "$alert names no runbook section"
done
exit $failed
