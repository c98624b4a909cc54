//! The guards: the conditions, locks and steps of the library that make the properties hold. Each guard can be removed,
//! to see what it is for.
//!
//! A *take* reserves a kept row for one attempt. Each take increases the row's *take number* (`takes`), and a *fence*
//! is a condition on this number, so that an outdated attempt cannot change the row. To *tell* is to report to a hook.
//! A *turn* gives one process a task that runs in one process at a time. A *place* is a permit for one connection of
//! the pool.

/// A guard in SQL or Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Guard {
    /// `claim.sql`: the primary key and `on conflict do nothing`.
    OneClaim,
    /// `claim.sql`: `pg_advisory_xact_lock`.
    LockOfClaim,
    /// `0004_claim.sql`, `end_kept`: the take number.
    FenceOfClaim,
    /// `0004_claim.sql`, `end_kept`: `state = 'due'`.
    OnlyDueIsClaimed,
    /// `attempt.rs`: an attempt fails in a process that has no handler for the event type, and claims nothing.
    HandlerIsThere,
    /// `late_claim.rs`: `begin` refuses if the claim finds another value of `reprocessed` than the look-up did.
    SameReprocessed,
    /// `0004_claim.sql`: the take number, which is the last argument of the function.
    FenceOfFunction,
    /// `claim.rs`: `NotClaimed::Superseded` if the row that was taken is no longer there.
    Superseded,
    /// `claim.rs`: the kept row is ended in the transaction of the claim.
    EndInTheTransaction,
    /// `claim.rs`: an attempt that had to wait for the claim looks at the kept row again.
    LookAgain,
    /// `fail.sql`: `takes = $9`.
    FenceOfFail,
    /// `fail.sql`, `give_back.sql`, `give_back_ahead.sql`: `taken_by is not null`.
    OnlyDueFails,
    /// `give_back.sql`: `takes = $4`.
    FenceOfGiveBack,
    /// `give_back_ahead.sql`: `kept.takes = key.takes`.
    FenceOfGiveBackAhead,
    /// `drop.sql`: the fence for a discard by the handler.
    FenceOfDrop,
    /// `record_result.rs`: the delivery counts as kept only if `fail.sql` or `give_back.sql` has changed its row.
    KeptAsWritten,
    /// `take.sql`: `taken_by is null or not exists (select from idempotent_webhook.processes where number = taken_by)`.
    TakeOnlyFree,
    /// `take.sql`: `paused_at is not null`.
    TakeNotPaused,
    /// `migrations/0002_kept.sql`: `takes` of a new row starts at a number made from the current time, so that no
    /// attempt at an earlier row has the same number.
    NewNumbers,
    /// `liveness/other_processes.rs`: the number of a process is deleted only after six seconds of silence.
    GraceOfSilent,
    /// `liveness/other_processes.rs`: each process measures the silence of another process by its own clock, and not by
    /// the clock of Postgres.
    OwnClock,
    /// `liveness/mod.rs`: a process whose last heartbeat is not recent does not take deliveries.
    StopOfSilent,
    /// `liveness/mod.rs`: a process deletes the numbers of silent processes.
    Expire,
    /// `liveness/numbers.rs`: a process gives up the numbers that no attempt holds.
    GiveUp,
    /// `taken.rs`: an attempt holds its number until its result is recorded.
    HoldNumber,
    /// `claim.sql`: `idle_in_transaction_session_timeout`.
    IdleTimeout,
    /// `accept.sql`: `number not in (select number from processed`.
    AcceptLooks,
    /// `resend.sql`: `not exists` of `deliveries`.
    ResendLooks,
    /// `resend.sql`: `known.takes + (known.state <> 'due')::int`.
    FenceOfResend,
    /// `resend.sql`: it does not change a row whose attempt is running.
    ResendLeavesRunning,
    /// `keeper.rs`: `resolve` after a resend.
    ResolveResent,
    /// `keep_failed.sql`: `not exists` of `deliveries`.
    KeepFailedLooks,
    /// `keep_failed.sql`: `known.takes + changes::int`.
    FenceOfKeepFailed,
    /// `kept/result.rs`: `lock.sql` before `keep_failed.sql`.
    KeepFailedWaits,
    /// `record_result.rs`: a duplicate ends the kept row (`resolve.sql`).
    ResolveDuplicate,
    /// `resolve.sql`: `exists (select from processed)`.
    ResolveLooks,
    /// `failure.rs`: a commit in doubt is a 503.
    DoubtIsNo,
    /// `commit.rs`: an aborted transaction is detected.
    AbortedIsNo,
    /// `keep_first.rs`: the answer is sent only after the delivery is kept.
    AcceptedIsKept,
    /// `retry.sql`: `takes + 1`.
    FenceOfRetry,
    /// `operation.rs`: a retry does not change a delivery whose attempt is running (`is_taken`).
    RetryLeavesRunning,
    /// `operation.rs`: `await_attempt.sql` before `discard.sql`.
    DiscardWaits,
    /// `operation.rs`: the states that a discard can change.
    DiscardLeavesProcessed,
    /// `operation.rs`: `not_running.sql` before `discard.sql`, for an action on many deliveries.
    ManyLeaveRunning,
    /// `operator/filter.rs`: `last_received_at < to_timestamp($13)`. `operation.rs`: `again.received_at >= to_timestamp($4)`.
    ManyLeaveLater,
    /// `operator/mod.rs`: a forget deletes the kept row.
    ForgetDeletesKept,
    /// `reprocess.sql`: `takes + 1`.
    FenceOfReprocess,
    /// `erase.sql`: `takes + 1`.
    FenceOfErase,
    /// `set_aside.sql`: a discarded or forgotten delivery is remembered, so that reconciliation does not report it as
    /// missing.
    SetAside,
    /// `accept.sql`: a delivery that reconciliation found is kept only if nobody has set it aside since.
    ListedIsNotSetAside,
    /// `retention/delete.rs`: `remember.sql` in the transaction of the delete.
    RememberPruned,
    /// `redelivery_window.rs`: `age.max(self.length)`.
    RedeliveryWindow,
    /// `retention/delete.rs`: `still_kept.sql`, whose rows are not deleted.
    StillKept,
    /// `row_keys.rs`: `received_at < now() - $4`.
    StillOld,
    /// `lock_resolved.sql`: `for update of kept`.
    ResolvedIsLocked,
    /// `problems.sql`, `fail.sql`: the statement that finds a problem, or makes a delivery dead, also writes down that
    /// this must be reported.
    ToTellIsWritten,
    /// `told_change.sql`, `told_death.sql`: a change or death counts as reported only after the hook was called.
    ToldAfterTheCall,
    /// `problems.rs`, `dead.rs`: a process without a hook takes no reports.
    OnlyWithHook,
    /// `tell_change.sql`, `tell_death.sql`: while a process makes a report, no other process takes that report.
    OneTells,
    /// `tell_change.sql`, `tell_death.sql`: the time that a process has for a report is limited.
    TellingEnds,
    /// `tell_change.sql`, `problems.sql`: if a hook may have been called, but the call was not written down, the hook
    /// is called again.
    DoubtIsToldAgain,
    /// `problems.rs`: a process that was frozen before its call takes the change again.
    NotToldLate,
    /// `told_change.sql`: `tellings = $4`.
    FenceOfToldChange,
    /// `migrations/0002_kept.sql`: `tellings` of a new row starts at a number made from the current time, so that no
    /// call for an earlier row has the same number.
    NewTellings,
    /// `problems.sql`: the problem of an endpoint that no process serves any more is over.
    RemovedIsOver,
    /// `told_death.sql`: `takes = $4`.
    FenceOfToldDeath,
    /// `connection.rs`: `given_up::keep_place`.
    PlaceIsKept,
    /// `given_up.rs`: `pg_cancel_backend(pid)`.
    HandlerIsCancelled,
    /// `commit.rs`: `connection.take_from_handler()`.
    CommitIsNotCancelled,
    /// `given_up.rs`: `Runs::No`.
    SilentIsClosed,
    /// `given_up.rs`: `Runs::Perhaps`.
    RunningIsNotClosed,
    /// `take_turn.sql`: `where turn.process = excluded.process or turn.next_at not between now() and now() + $7`.
    TurnOfOne,
    /// `take_turn.sql`: `turn.next_at not between now()`, even if a process has the turn.
    TurnEnds,
    /// `take_turn.sql`: `and now() + $7`.
    LongestTurn,
    /// `take_turn.sql`: `$8 and turn.process is null`.
    RequestWaits,
    /// `turn.rs`: `and process = $5`.
    FenceOfTurn,
    /// `position.rs`: `self.turn.extend(&mut tx)`.
    TurnIsExtended,
}

/// The guards that are in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards(u128);

impl Guards {
    /// All guards: the library as it is.
    pub const ALL: Self = Self(u128::MAX);

    /// These guards, except for this one.
    pub const fn without(self, guard: Guard) -> Self {
        Self(self.0 & !(1 << guard as u8))
    }

    /// Whether a guard is in place.
    pub const fn has(self, guard: Guard) -> bool {
        self.0 & (1 << guard as u8) != 0
    }
}
