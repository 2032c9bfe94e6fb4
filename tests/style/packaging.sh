#!/usr/bin/env bash
# What of the package can be checked without building it: scripts parse, accounts and permissions are
# understood, every file that is named exists. ./dev package-test does the rest.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
die() { echo "packaging.sh: $*" >&2; exit 1; }

for script in packaging/debian/{postinst,prerm,postrm}; do
    sh -n "$script" || die "$script does not parse"
    [ -x "$script" ] || die "$script is not executable"
    grep -qx 'set -e' "$script" || die "$script goes on after a mistake"
done

# Both tools take unknown words for warnings: any word is a complaint.
mkdir -p "$scratch/etc/outboxd"
cp packaging/environment "$scratch/etc/outboxd/"
said=$(systemd-sysusers --root="$scratch" "$PWD/packaging/sysusers.conf" 2>&1 | grep -v '^Creating') || true
[ -z "$said" ] || die "systemd-sysusers: $said"
account=$(sed -n 's/^User=//p' config/outboxd.service)
grep -q "^$account:.*:/usr/sbin/nologin$" "$scratch/etc/passwd" || die "sysusers.conf makes no account $account"
if [ "$(id -u)" = 0 ]; then
    said=$(systemd-tmpfiles --create --root="$scratch" "$PWD/packaging/tmpfiles.conf" 2>&1) || true
    [ -z "$said" ] || die "systemd-tmpfiles: $said"
    [ "$(stat -c %a "$scratch/etc/outboxd/secrets" "$scratch/etc/outboxd/environment" | tr '\n' ' ')" = "700 600 " ] ||
        die "tmpfiles.conf leaves secrets open"
fi

# The drop-in says nothing that systemd does not know, comments taken out.
mkdir "$scratch/outboxd.service.d"
printf '#!/bin/sh\n' >"$scratch/outboxd"
chmod 755 "$scratch/outboxd"
sed "s|^ExecStart=/usr/bin/outboxd |ExecStart=$scratch/outboxd |" config/outboxd.service >"$scratch/outboxd.service"
sed -E 's/^#([A-Z][A-Za-z]+=)/\1/' packaging/drop-in.conf >"$scratch/outboxd.service.d/local.conf"
said=$(systemd-analyze verify "$scratch/outboxd.service" 2>&1 | grep -vE '^(/usr)?/lib/systemd/system/|^/etc/systemd/system/') || true
[ -z "$said" ] || die "drop-in.conf: $said"

# A conffile is a file that is installed below /etc.
while read -r file; do
    grep -q "install(FILES ${file##*/} DESTINATION ${file%/*} " packaging/CMakeLists.txt || die "nothing installs $file"
done <packaging/debian/conffiles
for name in $(grep -oE '\$\{PROJECT_SOURCE_DIR\}/[A-Za-z0-9_./-]+' packaging/CMakeLists.txt | sed 's|.*}/||; s|/$||'); do
    compgen -G "$name" >/dev/null || [ "$name" = docs/ ] || die "packaging/CMakeLists.txt installs $name, which is not there"
done
echo "packaging: scripts, account, permissions and the list of files hold together"
