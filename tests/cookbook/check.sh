#!/usr/bin/env bash
# check.sh OUTBOXD: every file of config/cookbook passes check-config --strict --tests, and its tests
# would notice: with one status turned round they fail. No network, made-up secrets.
set -euo pipefail
outboxd=$1
cookbook=$(cd "$(dirname "$0")/../../config/cookbook" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CREDENTIALS_DIRECTORY=$scratch/credentials
mkdir "$CREDENTIALS_DIRECTORY"
failed=0
files=0
for file in "$cookbook"/*.yaml; do
    name=$(basename "$file")
    files=$((files + 1))
    { grep -o '\${cred:[a-z_]*}' "$file" || true; } | sed 's/^..cred:\(.*\)}$/\1/' | while read -r secret; do
        case $secret in
            whsec) echo "whsec_bWFkZS11cC1zZWNyZXQtb2Ytb3VyLW93bg==" ;;
            *) echo "made-up-secret" ;;
        esac >"$CREDENTIALS_DIRECTORY/$secret"
    done
    if ! "$outboxd" check-config --strict --tests "$file" >"$scratch/out" 2>&1; then
        echo "$name does not pass:"
        cat "$scratch/out"
        failed=1
    fi
    if grep -qE "made-up-secret|bWFkZS11cC1z" "$scratch/out"; then
        echo "$name: a secret was printed"
        failed=1
    fi
    # The first rule's status, exit code or is_error that means success, changed: some test must fail.
    sed -e '0,/when: { status: \(\[20[01], 20[14]\]\|20[0-2]\)/s//when: { status: 299/' -e '0,/ 0: succeeded/s// 0: unknown/' \
        -e '0,/when: { is_error: false/s//when: { rpc_error: 299/' \
        "$file" >"$scratch/$name"
    cmp -s "$file" "$scratch/$name" && { echo "$name: nothing to change"; failed=1; }
    code=0
    "$outboxd" check-config --tests "$scratch/$name" >"$scratch/out" 2>&1 || code=$?
    if [ "$code" != 1 ]; then
        echo "$name: its tests do not notice a changed rule (exit $code)"
        cat "$scratch/out"
        failed=1
    fi
done
[ "$files" -ge 14 ] || { echo "only $files files"; failed=1; }
[ "$failed" = 0 ] && echo "ok: $files files"
exit "$failed"
