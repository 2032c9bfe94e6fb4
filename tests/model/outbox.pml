/*
 * The protocol of outboxd for spin: one operation, two daemons, a planner, a provider, time.
 * run.sh runs it in all its variants; docs/model.md says what is modelled and what is not.
 *
 * - Every statement of sql/queries is one atomic step; between two steps anything may happen. A
 *   frozen process is one that takes no step for as long as it likes, so freezes are everywhere.
 * - An epoch is only ever compared for equality and never repeats. So it is one bit per writer:
 *   "the epoch I read is still the row's" (`holds` of attempts, `claims` of probers). Every write
 *   of status clears them all: lease_epoch + 1.
 * - Time is abstract: per attempt `early`, then `overdue` (its hard deadline has passed), then
 *   `settled` (deadline + settle have passed). What left in time is applied or lost before that.
 *
 * Options: KEY the provider honours the idempotency key · LAG its index may hide an effect for
 * ever · FREEZE_BEFORE_SEND a worker may freeze between its deadline check and send() ·
 * ONLY_RESIDUAL what follows from a byte sent that way is excused · EFFECTS_ONLY a wrong "failed"
 * is not looked for (nor one that rests on an index with LAG) · LIVE few faults, for the fairness
 * check · the others remove one guard each.
 */

#ifndef LEASES
#define LEASES 3    /* leases in one run; beyond them retry.give_up_after has passed */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2  /* retry.max_attempts */
#endif
#ifndef RETRIES
#define RETRIES 1   /* failed → pending */
#endif
#ifndef DAEMONS
#define DAEMONS 2
#endif
#define NOBODY  DAEMONS

mtype = { none, pending, scheduled, attempting, unknown, succeeded, failed, cancelled };
mtype = { gone, ready, checked, sent, writing, late };     /* where an attempt's coroutine is */
mtype = { nothing, ok, rejected, retry, not_sent, no_answer };                 /* its outcome */
mtype = { unsent, in_flight, done };                                           /* its request */
mtype = { early, overdue, settled };                              /* its deadline, and settle */
mtype = { idle, found, absent, ask_again, give_up };       /* what a prober is about to write */
mtype = { by_attempt, by_probe, by_evidence, by_other };              /* who writes a status */

/* outbox.queue and outbox.outcome, as far as the protocol reads them. */
typedef Row {
    mtype status = none;
    byte attempt;         /* attempt_epoch: which lease was the last one */
    byte attempts;
    byte leased_by = NOBODY;
    byte result;          /* whose effect the result shows; 0: no result */
    bool ambiguous;
    bool was_unknown;     /* an event unknown, lease_expired or probe is on file */
    bool proved;          /* queue.attention = late_effect: an effect is proved already */
    bool flagged;         /* attention: a person must look, no probe by itself */
    bool second           /* attention = duplicate_effect */
}
Row row;

/* outbox/executor.cpp: one coroutine per attempt, in the daemon that leased it. */
typedef Attempt_ {
    mtype at = gone;
    mtype outcome = nothing;
    mtype request = unsent;
    mtype time = early;
    byte owner = NOBODY;
    bool ambiguous;       /* LeasedAttempt::ambiguous, as of the lease */
    bool was_unknown
}
Attempt_ a[LEASES];

/* outbox/reconciler.cpp and outbox/leaser.cpp of each daemon. */
typedef Daemon_ {
    mtype probe = idle;
    bool lost;            /* Leaser::lost_: a lease whose answer was lost */
    bool named            /* IN_FLIGHT_SET only: Executor::in_flight_ as a set */
}
Daemon_ d[DAEMONS];

bool orphan;              /* a lease statement whose client is gone is under way in the server */
byte leases, holds, claims, retries, faults;
byte made;                /* the provider's truth: whose attempts had an effect, as bits */
byte seen;                /* whose effects a worker has handed in, as bits */
bool late_byte;           /* a byte left after its deadline: the residual hole was used */

#define mask(k)     (1 << (k))
#define is_open(s)  (s == pending || s == scheduled || s == attempting || s == unknown)
#define is_final(s) (s == succeeded || s == failed || s == cancelled)
#define is_settled  (row.status == none || is_final(row.status) || (row.status == unknown && row.flagged))
#define runs(w, k)  (a[k].at != gone && a[k].owner == w)
#if LEASES > 2
#define runs_any(w) (runs(w, 0) || runs(w, 1) || runs(w, 2))
#else
#define runs_any(w) (runs(w, 0) || runs(w, 1))
#endif

/* Faults are unlimited, but for the fairness check: there the world calms down at some time. */
#ifdef LIVE
#define may_fail (faults < 1)
#define count_fault faults++
#else
#define may_fail true
#define count_fault skip
#endif

/* --- properties ---------------------------------------------------------------------------- */
bool second_effect, false_success, false_failure, unjust_failure, unknown_without_verdict;
bool out_of_succeeded, evidence_ignored, silent_duplicate, leased_after_proof, stuck;

#define must(condition, name) if :: (condition) :: else -> name = true; assert(!name) fi

#ifdef ONLY_RESIDUAL
#define outside_hole(condition, name) must(late_byte || (condition), name)
#else
#define outside_hole(condition, name) must(condition, name)
#endif

/* --- writes of status ---------------------------------------------------------------------- */
/* A deadline that nobody will look at any more: fewer states to walk. */
#define tidy(k) if :: a[k].at == gone && k < leases -> a[k].time = settled :: else fi

/* One write: the epoch moves, so whoever read it before is fenced. */
inline write(to, by) {
    must(row.status != succeeded || to == succeeded, out_of_succeeded);
    must(row.status != unknown || to == unknown || by == by_probe || by == by_evidence, unknown_without_verdict);
    must(to != succeeded || made != 0, false_success);
#ifndef EFFECTS_ONLY
    if :: to == failed && by == by_attempt -> outside_hole(made == 0, unjust_failure) :: else fi;
#endif
    if
    :: to == unknown -> row.ambiguous = true; row.was_unknown = true
    :: else -> row.flagged = false
    fi;
    if
    :: is_final(to) ->
        row.proved = false;
        row.attempts = 0;
        tidy(0);
        tidy(1);
#if LEASES > 2
        tidy(2)
#endif
    :: else
    fi;
    row.status = to;
    row.leased_by = NOBODY;
    holds = 0;
    claims = 0
}

/* finish_operations.sql and move_operations.sql: where a late answer has proved an effect, the end
 * is succeeded, whatever was to be written (move refuses, read_fates.sql says "settle"). */
inline finish_or_move(to, by, shows) {
    if
    :: row.proved ->
        if
        :: to == succeeded && row.status == attempting && shows != row.result -> row.second = true
        :: else
        fi;
        if :: to == succeeded -> row.result = shows :: else fi;
        write(succeeded, by_evidence);
        row.flagged = true
    :: else ->
        if :: to == succeeded -> row.result = shows :: else fi;
        write(to, by)
    fi
}

/* lease_operations.sql: the journal entry of attempt k = leases. */
inline take(w) {
    must(!row.proved, leased_after_proof);
    row.attempts++;
    row.attempt = leases;
    a[leases].owner = w;
    a[leases].ambiguous = row.ambiguous;
    a[leases].was_unknown = row.was_unknown;
    write(attempting, by_other);
    if :: leases > 0 -> tidy(leases - 1) :: else fi;
    row.leased_by = w;
    holds = mask(leases);
    leases++
}

/* decide.cpp: no end of this attempt, but for a success, may hide an earlier one that is in doubt. */
#ifdef NO_REJECTED_AFTER_UNKNOWN
#define no_effect(k) failed
#else
#define no_effect(k) (a[k].ambiguous -> unknown : failed)
#endif
#define gave_up (leases == LEASES)

inline decide(k) {
    if
    :: a[k].outcome == ok -> to = succeeded
    :: a[k].outcome == rejected -> to = no_effect(k)
    :: a[k].outcome == retry -> to = (row.attempts >= ATTEMPTS || gave_up -> no_effect(k) : scheduled)
    :: a[k].outcome == not_sent -> to = (gave_up -> no_effect(k) : scheduled)
    :: a[k].outcome == no_answer -> to = unknown
    fi
}

/* Not sent (and 429, 401): the attempt is given back. A release at a stop is the same, but goes to
 * pending at once instead of scheduled and then promoted. */
inline give_back(k) {
    if :: a[k].outcome == not_sent && is_open(row.status) && row.attempts > 0 -> row.attempts-- :: else fi
}

/* Transition::evidence: the echo proves nothing. */
#define shows_no_effect(k) (a[k].outcome == retry || a[k].outcome == not_sent || (a[k].outcome == rejected && !a[k].ambiguous))

#ifdef KEY
#define result_of(k) 1       /* one effect, and every replay shows its result */
#else
#define result_of(k) (k + 1)
#endif

/* record_late_result.sql */
inline record_late(k) {
    decide(k);
    if
#ifdef MARK_AGAIN
    :: a[k].outcome == ok && row.status == attempting ->                              /* mark */
        row.proved = true; row.ambiguous = true; row.result = result_of(k)
#else
    :: a[k].outcome == ok && row.status == attempting && !row.proved ->               /* mark */
        row.proved = true; row.ambiguous = true; row.result = result_of(k)
    :: a[k].outcome == ok && row.status == attempting && row.proved && row.result == result_of(k)
    :: a[k].outcome == ok && row.status == attempting && row.proved && row.result != result_of(k) ->
        row.second = true;                            /* settle: two effects beside this attempt */
        write(succeeded, by_evidence);
        row.flagged = true
#endif
    :: a[k].outcome == ok && is_open(row.status) && row.status != attempting ->     /* settle */
#ifdef SETTLE_UNFLAGGED
        flag = (row.status != unknown);
#else
        flag = (row.status != unknown || row.proved);
        if :: row.proved && row.result != result_of(k) -> row.second = true :: else fi;
#endif
        row.result = result_of(k);
        write(succeeded, by_evidence);
        row.flagged = flag
    :: a[k].outcome == ok && (row.status == failed || row.status == cancelled) -> /* overturn */
        row.result = result_of(k);
        write(succeeded, by_evidence);
        row.flagged = true
    :: a[k].outcome == ok && row.status == succeeded ->                  /* duplicate, or store */
        if :: row.result != result_of(k) -> row.second = true :: else fi
    :: shows_no_effect(k) && row.status == unknown && row.attempt == k && !a[k].was_unknown ->
        write(to, by_evidence);                                                 /* again, fail */
        row.ambiguous = false;
        give_back(k)
    :: else                                                                           /* store */
    fi
}

/* --- the daemons --------------------------------------------------------------------------- */
inline send(k) {
    late_byte = late_byte || a[k].time != early;
    a[k].at = sent;
    a[k].request = in_flight
}

inline ended(k, how) { a[k].outcome = how; a[k].at = writing }

inline forget(k) {  /* the coroutine is over: what it knew is gone */
#ifdef IN_FLIGHT_SET
    d[a[k].owner].named = false;
#endif
    a[k].at = gone;
    a[k].outcome = nothing;
    a[k].owner = NOBODY;
    a[k].ambiguous = false;
    a[k].was_unknown = false;
    if :: row.attempt != k || !is_open(row.status) -> a[k].time = settled :: else fi
}

/* The epoch compare of a completion. */
#ifdef NO_EPOCH_ATTEMPT
#define mine(k) is_open(row.status)
#else
#define mine(k) (holds & mask(k))
#endif

/* executor.cpp and completer.cpp: one attempt from its lease to its record. A crash of its daemon
 * sets at = gone. */
proctype Attempt(byte k) {
    mtype to;
    bool flag;
end:
    do
    /* The deadline is checked right before the first byte. */
#ifdef FREEZE_BEFORE_SEND
    :: d_step { a[k].at == ready && a[k].time == early -> a[k].at = checked }
    :: d_step { a[k].at == checked -> send(k) }
#else
#ifdef NO_DEADLINE_CHECK
    :: d_step { a[k].at == ready -> send(k) }
#else
    :: d_step { a[k].at == ready && a[k].time == early -> send(k) }
#endif
#endif
    /* The time is up, no connection, a stop: not sent. */
    :: d_step { a[k].at == ready -> ended(k, not_sent) }
    /* A reset, a time-out, an answer that says nothing. The others come from Provider. */
    :: d_step { a[k].at == sent -> ended(k, no_answer) }
    /* Completer: applied, and acknowledged or not; or fenced. After a lost acknowledgement the
     * write is found applied (read_fates.sql) or filed as evidence; evidence covers both. */
    :: atomic { a[k].at == writing && mine(k) ->
        decide(k);
        give_back(k);
        finish_or_move(to, by_attempt, result_of(k));
        if :: a[k].outcome == ok -> seen = seen | mask(k) :: else fi;
        if :: forget(k) :: may_fail -> count_fault; a[k].at = late fi;
        to = 0 }
    :: d_step { a[k].at == writing && !(mine(k)) -> a[k].at = late }
    :: d_step { a[k].at == late ->
#ifndef NO_EVIDENCE
        record_late(k);
#endif
        if
        :: a[k].outcome == ok ->
            seen = seen | mask(k);
            must(row.status == succeeded || row.proved, evidence_ignored)
        :: else
        fi;
        forget(k);
        to = 0; flag = false }
    od
}

/* release_lost_leases.sql: neither what is in flight, named by operation, nor what is proved to
 * have had an effect is given back. */
#ifdef IN_FLIGHT_SET
#define in_flight_of(w) d[w].named
#else
#define in_flight_of(w) runs_any(w)
#endif
#ifdef RELEASE_PROVED
#define keeps(w) in_flight_of(w)
#else
#define keeps(w) (in_flight_of(w) || row.proved)
#endif
#define may_lease(w) (row.status == pending && leases < LEASES && !d[w].lost)

/* leaser.cpp of one daemon, and its crash. */
proctype Daemon(byte w) {
    byte k;
end:
    do
    /* The lease is committed and acknowledged: dispatched. */
    :: d_step { may_lease(w) ->
        k = leases; take(w); a[k].at = ready;
#ifdef IN_FLIGHT_SET
        d[w].named = true;
#endif
        k = 0 }
    /* Committed, but the answer is lost: nothing is dispatched. */
    :: d_step { may_lease(w) && may_fail -> count_fault; take(w); d[w].lost = true }
    /* The connection broke, and the statement may still be under way in the server. */
    :: d_step { may_lease(w) && may_fail && !orphan -> count_fault; d[w].lost = true; orphan = true }
    :: d_step { orphan && row.status == pending && leases < LEASES -> take(w); orphan = false }
    :: d_step { orphan -> orphan = false }
    /* A lease of other operations lost its answer. */
    :: d_step { may_fail && row.status == attempting && row.leased_by == w && !d[w].lost ->
        count_fault; d[w].lost = true }
    :: d_step { d[w].lost ->
        d[w].lost = false;
        if
        :: row.status == attempting && row.leased_by == w && !(keeps(w)) -> row.attempts--; write(pending, by_other)
        :: else
        fi }
#ifdef NO_DISPATCH_AFTER_ACK
    /* Dispatched when the rows came back; the commit failed. */
    :: d_step { may_lease(w) -> a[leases].owner = w; a[leases].at = ready; leases++ }
#endif
#ifdef NO_LEASE_FLUSH
    /* The database restarts and has forgotten the last commit. */
    :: d_step { row.status == attempting && row.leased_by == w -> row.attempts--; write(pending, by_other) }
#endif
    /* kill -9; what comes back has a fresh id. */
    :: d_step { may_fail && (runs_any(w) || d[w].probe != idle || d[w].lost) ->
        count_fault;
        for (k : 0 .. LEASES - 1) { if :: runs(w, k) -> forget(k) :: else fi }
        k = 0;
        d[w].probe = idle; d[w].lost = false;
        claims = claims & ~mask(w);
        if :: row.leased_by == w -> row.leased_by = NOBODY :: else fi }
    od
}

#define two_made (made & (made - 1))
#ifdef KEY
#define effect_shown 1
#else
#define effect_shown ((made & 1) -> 1 : ((made & 2) -> 2 : 3))
#endif
/* The last attempt may still arrive, or be indexed. */
#define in_time (a[row.attempt].time != settled)

/* decide_probe.cpp on an absent that was seen by a probe which begins now. */
#ifdef NO_SETTLE
#define believed true
#else
#define believed (!in_time)
#endif
/* The provider's index: before settle it may not show what is there. */
#ifdef LAG
#define may_miss true
#else
#define may_miss in_time
#endif
/* The epoch compare of a verdict. */
#ifdef NO_EPOCH_PROBE
#define own_claim(w) is_open(row.status)
#else
#define own_claim(w) (claims & mask(w))
#endif

inline claim(w, verdict) { holds = 0; claims = mask(w); d[w].probe = verdict }
/* A claim lasts as long as a probe may (due_at). It may run out all the same, but two probers that
 * overtake each other for ever are no fair run. */
#ifdef LIVE
#define overtaken (claims != 0)
#else
#define overtaken false
#endif
#define may_claim(w) (d[w].probe == idle && row.status == unknown && !row.flagged && !overtaken)

/* reconciler.cpp of one daemon. A claim runs out, so both may be asking. */
proctype Prober(byte w) {
    mtype to;
    byte shown;
end:
    do
    /* claim_probes.sql and the question in one step: asked later it could only find more. */
    :: d_step { may_claim(w) && made != 0 && !two_made -> claim(w, found); shown = effect_shown }
    :: d_step { may_claim(w) && two_made -> claim(w, give_up) }                   /* conflict */
    :: d_step { may_claim(w) && (made == 0 || may_miss) && believed -> claim(w, absent) }
    :: d_step { may_claim(w) && (made == 0 || may_miss) && !believed -> claim(w, ask_again) }
    :: d_step { may_claim(w) -> claim(w, give_up) }                /* inconclusive for too long */
#if !defined(LIVE) || defined(NO_GIVE_UP)
    :: d_step { may_claim(w) -> claim(w, ask_again) }                           /* inconclusive */
#endif
    /* The one write of the verdict; one that comes too late is dropped. */
    :: d_step { d[w].probe != idle ->
        if
        :: own_claim(w) ->
            if
            :: d[w].probe == found -> to = succeeded
            :: d[w].probe == absent -> to = (row.attempts >= ATTEMPTS || gave_up -> failed : scheduled)
            :: else -> to = unknown
            fi;
            finish_or_move(to, by_probe, shown);
            if :: d[w].probe == give_up && row.status == unknown -> row.flagged = true :: else fi
        :: else
        fi;
        d[w].probe = idle;
        to = 0; shown = 0 }
    od
}

/* maintainer.cpp of whichever daemon: one statement each. */
proctype Maintainer() {
end:
    do
    :: d_step { row.status == scheduled -> write(pending, by_other) }      /* promote_due.sql */
    /* expire_leases.sql: the lease ran out, or its worker is stale: that may be at any time. */
#ifndef NO_EXPIRY
    :: d_step { row.status == attempting -> write(unknown, by_other) }
#endif
    /* expire_operations.sql: expires_at may be any time. */
    :: d_step { row.status == pending || row.status == scheduled -> write(failed, by_other) }
    od
}

/* --- the world ----------------------------------------------------------------------------- */
/* The answer reaches an attempt that still waits, else nobody; it may be lost (no_answer). */
inline reply(k, what) {
    a[k].request = done;
    if :: a[k].at == sent -> ended(k, what) :: else fi
}

/* The other side: a request that left is applied, refused, or lost on the way. */
proctype Provider(byte k) {
end:
    do
    :: d_step { a[k].request == in_flight ->
#ifdef KEY
        if :: made == 0 -> made = mask(k) :: else fi;              /* a replay has no effect */
#else
        outside_hole(made == 0, second_effect);
        made = made | mask(k);
#endif
        reply(k, ok) }
    /* 422; or the echo of an effect that is there: "exists", "key is used". */
    :: d_step { a[k].request == in_flight -> reply(k, rejected) }
    :: d_step { a[k].request == in_flight -> reply(k, retry) }     /* 503 and the like: no effect */
    :: d_step { a[k].request == in_flight -> a[k].request = done }
    od
}

/* Deadlines pass, and settle passes once what left in time has arrived. */
proctype Clock(byte k) {
end:
    do
    :: d_step { leases > k && a[k].time == early -> a[k].time = overdue }
    :: d_step { a[k].time == overdue && a[k].request != in_flight -> a[k].time = settled }
    od
}

/* enqueue, again after a lost answer (a replay: nothing is written); cancel; retry. */
proctype Planner() {
end:
    do
    :: d_step { row.status == none -> write(pending, by_other) }
#ifdef NO_UNIQUE_KEY
    :: d_step { row.status != none && retries < 1 -> retries++;          /* filed once more */
        row.status = none; write(pending, by_other); row.attempts = 0 }
#endif
    :: d_step { row.status == pending || row.status == scheduled -> write(cancelled, by_other) }
    /* outbox.arm_again, by retry or enqueue(retry_failed): a fresh budget, ambiguous is kept. */
    :: d_step { row.status == failed && retries < RETRIES -> retries++; write(pending, by_other) }
    od
}

#ifndef LIVE
/* Nothing can move any more: the end of a run. */
proctype Quiet() {
end:
    timeout ->
    must(is_settled, stuck);
#if !defined(EFFECTS_ONLY) && !defined(LAG)
    outside_hole((row.status != failed && row.status != cancelled) || made == 0, false_failure);
#endif
    /* An unknown one waits for a person, whose look-up shows both. */
    must(!((seen & made) & ((seen & made) - 1)) || row.second || (row.status == unknown && row.flagged), silent_duplicate)
}
#endif

init {
    byte k;
    atomic {
        for (k : 0 .. LEASES - 1) { run Attempt(k); run Provider(k); run Clock(k) }
        for (k : 0 .. DAEMONS - 1) { run Daemon(k); run Prober(k) }
        run Maintainer();
        run Planner();
#ifndef LIVE
        run Quiet();
#endif
        k = 0
    }
}

#ifdef LIVE
ltl nothing_lost { <> [] is_settled }
#endif
