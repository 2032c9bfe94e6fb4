# Sourced: a minimal Debian root file system from the mirror this machine already uses.

# debian_root SUITE DIR [PACKAGES]: makes it once.
debian_root() {
    local suite=$1 dir=$2 packages=${3-git,ca-certificates} site
    [ -e "$dir/.complete" ] && return
    site=$(apt-get indextargets --format '$(SITE)' | grep -v security | head -n 1)
    rm -rf "$dir"
    mkdir -p "$dir"
    debootstrap --variant=minbase ${packages:+--include="$packages"} "$suite" "$dir" "$site" >"$dir.log" 2>&1 || {
        tail -n 20 "$dir.log" >&2
        return 1
    }
    touch "$dir/.complete"
}
