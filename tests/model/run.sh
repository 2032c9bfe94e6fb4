#!/usr/bin/env bash
# Checks outbox.pml in all its variants: the protocol as it is must have no counter-example, and
# the protocol with one guard removed must have the one that the guard is there for. One line per
# variant; the last line counts. run.sh [--full] [NAME…]: --full adds the large bounds (minutes).
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
for program in spin gcc; do
    command -v $program >/dev/null || { echo "run.sh: needs $program" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# spin writes the verifier, gcc compiles it, and it walks every state (no hashing, no sampling).
verify() { # option…
    local with="-DSAFETY -DNOREDUCE" how="-m1000000"
    case " $* " in *" -DLIVE "*) with="-DNOREDUCE -DNFAIR=5" how="-a -f -m1000000" ;; esac
    (cd "$work" && rm -f pan* ./*.trail && spin -a "$@" "$here/outbox.pml" >spin.log &&
        gcc -O1 -w $with -DMEMLIM=12000 -o pan pan.c && nice ./pan $how -w22) >"$work/log" 2>&1
}

# check NAME EXPECTED OPTION…: EXPECTED is "none", a property of the model, or "a cycle".
check() {
    local name=$1 expected=$2 found states start=$EPOCHREALTIME took
    shift 2
    if [ ${#wanted[@]} != 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
    verify "$@"
    took=$(((${EPOCHREALTIME/./} - ${start/./}) / 100000))
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/log")
    found=$(sed -n -e 's/.*assertion violated *!(\([a-z_]*\)).*/\1/p' \
        -e 's/.*acceptance cycle.*at depth.*/a cycle/p' "$work/log" | head -n 1)
    # Only a search that came to its end says "none".
    if [ -z "$found" ] && grep -q 'errors: 0$' "$work/log" &&
        ! grep -qE 'search not completed|max search depth too small|out of memory' "$work/log"; then
        found=none
    fi
    if [ "$found" = "$expected" ]; then
        passed=$((passed + 1))
        printf 'ok   '
    else
        failed=$((failed + 1))
        printf 'FAIL '
    fi
    printf '%-42s counter-example: %-24s %9s states %4d.%d s\n' \
        "$name" "${found:-(did not run)}" "$states" $((took / 10)) $((took % 10))
    [ "$found" = "$expected" ] || { echo "     expected: $expected"; tail -n 5 "$work/log" | sed 's/^/     /'; }
}

full=no
if [ "${1:-}" = --full ]; then full=yes; shift; fi
wanted=("$@")

small="-DLEASES=2 -DRETRIES=0"
one="-DDAEMONS=1 -DRETRIES=0"      # every coroutine of one daemon, and its crash
effects="$one -DLEASES=2 -DEFFECTS_ONLY"
hole="-DFREEZE_BEFORE_SEND"

# The protocol.
check protocol                          none   $small
check protocol-three-leases             none   $one -DLEASES=3
check protocol-with-retry               none   -DDAEMONS=1 -DLEASES=2 -DRETRIES=1
check protocol-settles-in-the-end       none   $one -DLEASES=2 -DLIVE
check honoured-key-and-a-lagging-index  none   $one -DLEASES=3 -DKEY -DLAG

# The residual hole: a freeze between the last deadline check and send().
check freeze-before-send                second_effect $effects $hole
check freeze-before-send-is-the-only-one none  $small $hole -DONLY_RESIDUAL
check freeze-before-send-with-key       none   $one -DLEASES=3 -DEFFECTS_ONLY $hole -DKEY
check freeze-before-send-with-key-failed false_failure $small $hole -DKEY

# One guard removed.
check no-unique-key                     second_effect $effects -DNO_UNIQUE_KEY
check no-lease-flush                    second_effect $effects -DNO_LEASE_FLUSH
check no-dispatch-after-ack             second_effect $effects -DNO_DISPATCH_AFTER_ACK
check no-deadline-check                 second_effect $effects -DNO_DEADLINE_CHECK
check no-settle                         second_effect $effects -DNO_SETTLE
check no-epoch-of-attempts              unknown_without_verdict $small -DNO_EPOCH_ATTEMPT
check no-epoch-of-probes                false_failure $small -DNO_EPOCH_PROBE
check no-rejected-after-unknown         unjust_failure $small -DKEY -DLAG -DNO_REJECTED_AFTER_UNKNOWN
check no-evidence                       evidence_ignored $small -DNO_EVIDENCE
check no-lease-expiry                   stuck  $small -DNO_EXPIRY
check no-give-up                        "a cycle" $one -DLEASES=2 -DNO_GIVE_UP -DLIVE
check in-flight-as-a-set                second_effect $one -DLEASES=3 -DEFFECTS_ONLY -DIN_FLIGHT_SET
check two-late-effects-beside-a-third     none   $one -DLEASES=3 -DATTEMPTS=3 $hole -DONLY_RESIDUAL
check release-of-what-is-proved         leased_after_proof $one -DLEASES=3 $hole -DONLY_RESIDUAL -DRELEASE_PROVED
check marked-twice-without-a-flag       silent_duplicate $one -DLEASES=3 -DATTEMPTS=3 $hole -DONLY_RESIDUAL -DMARK_AGAIN
check settled-without-a-flag            silent_duplicate $small $hole -DONLY_RESIDUAL -DSETTLE_UNFLAGGED

if [ $full = yes ]; then
    check full-protocol-with-retry          none   -DLEASES=2 -DRETRIES=1
    check full-three-leases-three-attempts  none   -DDAEMONS=1 -DLEASES=3 -DATTEMPTS=3 -DRETRIES=2
    check full-settles-in-the-end           none   $small -DLIVE
    check full-honoured-key-two-daemons     none   $small -DKEY -DLAG
    check full-freeze-with-key              none   $small -DEFFECTS_ONLY $hole -DKEY
    check full-freeze-three-leases          none   $one -DLEASES=3 $hole -DONLY_RESIDUAL
    check full-no-epoch-of-probes           second_effect -DLEASES=3 -DRETRIES=0 -DEFFECTS_ONLY -DNO_EPOCH_PROBE
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
