#!/usr/bin/env bash
# The .deb in a fresh Debian root beside a Postgres: lintian, install, configure, run as the unit says,
# upgrade under a running daemon, remove, purge. systemd does not run there, so this script does what it
# would: ExecStart as User= with EnvironmentFile=. Needs root, debootstrap, lintian. About two minutes.
#   package.sh DEB NEWER-DEB
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. tests/style/chroot.sh

deb=$(readlink -f "${1:?package.sh DEB NEWER-DEB}")
newer=$(readlink -f "${2:?package.sh DEB NEWER-DEB}")
die() { echo "package.sh: $*" >&2; exit 1; }
for program in debootstrap lintian setpriv curl; do
    command -v $program >/dev/null || die "$program is missing"
done
step() { echo "ok   package: $*"; }

# --- the file itself ----------------------------------------------------------------------------
lintian --allow-root --fail-on error,warning "$deb" || die "lintian complains, see above"
step "lintian has no error and no warning, $(stat -c %s "$deb") bytes"

# --- a fresh root -------------------------------------------------------------------------------
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
root=$PWD/build/package/root
debian_root "$suite" "$PWD/build/package/$suite"
umount -l "$root/proc" "$root/dev" 2>/dev/null || true
rm -rf "$root"
cp -a "build/package/$suite" "$root"
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
daemon=
postgres=
clean() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    [ -z "$postgres" ] || kill -INT "$postgres" 2>/dev/null || true
    umount -l "$root/proc" "$root/dev"
}
trap clean EXIT
cp /etc/resolv.conf /etc/hosts "$root/etc/"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@" </dev/null; }
apt() { inside apt-get -qq -o Dpkg::Use-Pty=0 "$@" >"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; die "apt-get $*"; }; }
apt update
apt install --no-install-recommends postgresql systemd
# A server of its own, on its socket alone: ports are this machine's.
inside pg_conftool -- "$(ls "$root/etc/postgresql")" main set listen_addresses ''
inside pg_ctlcluster "$(ls "$root/etc/postgresql")" main start
postgres=$(head -n 1 "$root"/var/lib/postgresql/*/main/postmaster.pid)

# --- install ------------------------------------------------------------------------------------
files() { (cd "$root" && find etc usr lib/systemd var/lib/systemd -xdev | grep -vE '^etc/(ld\.so\.cache|shells|passwd|group|g?shadow)' | sort); }
cp "$deb" "$newer" "$root/tmp/"
# Its libraries first, so that what is compared afterwards is the package's alone.
apt install --no-install-recommends $(dpkg-deb -f "$deb" Depends | tr ',' '\n' | awk '{ print $1 }' | grep -v '^systemd$')
files >"$root.before"
apt install --no-install-recommends "/tmp/$(basename "$deb")"
grep -q 'enabled, not started' "$root.log" || die "postinst does not say that a configuration is missing"
[ "$(inside stat -c '%a %U' /etc/outboxd/secrets)" = "700 root" ] || die "/etc/outboxd/secrets is open"
[ "$(inside stat -c '%a %U' /etc/outboxd/environment)" = "600 root" ] || die "/etc/outboxd/environment is open"
inside getent passwd outboxd | grep -q ':/usr/sbin/nologin$' || die "no account, or one that may log in"
[ -L "$root/etc/systemd/system/multi-user.target.wants/outboxd.service" ] || die "the unit is not enabled"
inside outboxd --version >/dev/null
! inside ldd /usr/bin/outboxd | grep 'not found' || die "a library is missing"
inside outboxd check-config --strict /usr/share/doc/outboxd/examples/outboxd.yaml >/dev/null
for file in man/man8/outboxd.8.gz bash-completion/completions/outboxd outboxd/alerts/outboxd.rules.yml \
    outboxd/grafana/outboxd.json outboxd/outboxd.schema.json doc/outboxd/copyright doc/outboxd/changelog.Debian.gz \
    doc/outboxd/examples/cookbook/stripe_refund.yaml doc/outboxd/examples/outboxd.service.d-local.conf \
    doc/outboxd/operators.md; do
    [ -s "$root/usr/share/$file" ] || die "/usr/share/$file is missing"
done
step "installs, enabled and not started"

# --- configure and start ------------------------------------------------------------------------
port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
as_postgres() { inside setpriv --reuid postgres --regid postgres --init-groups "$@"; }
as_postgres createdb -E UTF8 -T template0 planner
echo 'made-up' >"$root/etc/outboxd/secrets/mine"
# What README says to type is typed. The root has no sudo; what needs systemd or a keyboard is done here.
mkdir -p "$root/tmp/bin"
printf '#!/bin/sh\nif [ "$1" = -u ]; then user=$2; shift 2; exec runuser -u "$user" -- "$@"; fi\nexec "$@"\n' >"$root/tmp/bin/sudo"
chmod 755 "$root/tmp/bin/sudo"
sed -n '/^## As a service/,/^## /s/^    //p' README.md | grep -vE 'dev package|sudoedit|systemctl|curl' >"$root/tmp/readme.sh"
[ "$(grep -c '^sudo\|^echo' "$root/tmp/readme.sh")" = 5 ] || die "README's steps are not the ones this test knows: $(cat "$root/tmp/readme.sh")"
cat >"$root/etc/outboxd/outboxd.yaml" <<YAML
version: 1
database: { dsn: "\${env:OUTBOXD_DATABASE}" }
admin: { listen: "127.0.0.1:$port" }
tools:
  note:
    description: Write a line to the log.
    effect: read
    arguments: { type: object, required: [text], properties: { text: { type: string } } }
    execute: { type: log }
YAML

inside env PATH=/tmp/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -e /tmp/readme.sh >"$root.readme" 2>&1 || { cat "$root.readme" >&2; die "what README says fails"; }
grep -qx ok "$root.readme" || { cat "$root.readme" >&2; die "check-config does not say ok"; }

unit() { sed -n "s/^$1=//p" "$root"/lib/systemd/system/outboxd.service "$root"/usr/lib/systemd/system/outboxd.service 2>/dev/null | head -n 1; }
start() {
    local environment
    environment=$(unit EnvironmentFile)
    mapfile -t variables < <(grep -v '^#' "$root/${environment#-}" | tr -d '"')
    # shellcheck disable=SC2046  # ExecStart has no quotes
    setsid chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "${variables[@]}" \
        setpriv --reuid "$(unit User)" --regid "$(unit User)" --clear-groups --no-new-privs --bounding-set -all \
        $(unit ExecStart) >"$root.daemon" 2>&1 </dev/null &
    daemon=$!
    for _ in $(seq 300); do
        [ "$(ask readyz)" != 200 ] || return 0
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 20 "$root.daemon" >&2
    die "the daemon does not become ready"
}
ask() { curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/$1" || true; }
stop() { # it drains and exits 0
    local code=0
    kill -TERM "$daemon"
    wait "$daemon" || code=$?
    daemon=
    [ $code = 0 ] || die "SIGTERM ends the daemon with exit code $code"
}
operate() { inside env "$(grep '^OUTBOXD_DATABASE' "$root/etc/outboxd/environment" | tr -d '"')" setpriv --reuid outboxd --regid outboxd --clear-groups outboxd "$@"; }
start
operate enqueue note --arguments '{"text": "first"}' --operation-id first --wait 30s | grep -q succeeded ||
    die "the first operation does not succeed"
step "runs as its unit says, /readyz answers 200, an operation succeeds"

# --- upgrade ------------------------------------------------------------------------------------
apt install --no-install-recommends "/tmp/$(basename "$newer")"
grep -q 'outboxd migrate && systemctl restart outboxd' "$root.log" || die "postinst does not say how to go on"
[ "$(ask readyz)" = 200 ] || die "the upgrade stopped the running daemon"
grep -q '^OUTBOXD_DATABASE=' "$root/etc/outboxd/environment" || die "the upgrade lost what was changed in a conffile"
as_postgres outboxd migrate --database 'dbname=planner' >/dev/null
stop
start
operate enqueue note --arguments '{"text": "second"}' --operation-id second --wait 30s | grep -q succeeded ||
    die "no operation succeeds after the upgrade"
[ "$(inside dpkg-query -W -f '${Version}' outboxd)" = "$(dpkg-deb -f "$newer" Version)" ] || die "not upgraded"
step "upgrades beside a running daemon, conffiles kept"

# --- remove, purge ------------------------------------------------------------------------------
stop
apt remove outboxd
[ ! -e "$root/usr/bin/outboxd" ] || die "remove leaves the binary"
[ -s "$root/etc/outboxd/environment" ] && [ -s "$root/etc/outboxd/outboxd.yaml" ] || die "remove takes configuration"
apt purge outboxd
files >"$root.after"
left=$(comm -13 "$root.before" "$root.after" | tr '\n' ' ')
[ "$left" = "etc/outboxd etc/outboxd/outboxd.yaml etc/outboxd/secrets etc/outboxd/secrets/mine " ] ||
    die "purge leaves $left"
[ -z "$(comm -23 "$root.before" "$root.after")" ] || die "purge takes what it did not bring: $(comm -23 "$root.before" "$root.after")"
step "removes and purges: what is left is the user's"
