//! What keeps the properties. Each guard can be taken away, to see what it is for.

/// A guard in SQL or Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Guard {
    /// `claim.sql`: the primary key and `on conflict do nothing`.
    OneClaim,
    /// `claim.sql`: `pg_advisory_xact_lock`.
    LockOfClaim,
    /// `0004_claim.sql`, `end_kept`: the number of the take.
    FenceOfClaim,
    /// `0004_claim.sql`, `end_kept`: `state = 'due'`.
    OnlyDueIsClaimed,
    /// `attempt.rs`: an attempt in a process that has no handler for the type fails. It claims nothing.
    HandlerIsThere,
    /// `late_claim.rs`: `begin` refuses if the claim finds another `reprocessed` than the look-up.
    SameReprocessed,
    /// `0004_claim.sql`: the number of the take, as the last argument.
    FenceOfFunction,
    /// `claim.rs`: `NotClaimed::Superseded` if the row of a take is not there.
    Superseded,
    /// `claim.rs`: what is kept ends in the transaction of the claim.
    EndInTheTransaction,
    /// `claim.rs`: an attempt that has waited looks again at what is kept.
    LookAgain,
    /// `fail.sql`: `takes = $9`.
    FenceOfFail,
    /// `fail.sql`, `give_back.sql`, `give_back_ahead.sql`: `taken_by is not null`.
    OnlyDueFails,
    /// `give_back.sql`: `takes = $4`.
    FenceOfGiveBack,
    /// `give_back_ahead.sql`: `kept.takes = key.takes`.
    FenceOfGiveBackAhead,
    /// `drop.sql`: the fence of the handler's discard.
    FenceOfDrop,
    /// `record_result.rs`: it is kept only if `fail.sql` or `give_back.sql` has hit its row.
    KeptAsWritten,
    /// `take.sql`: `taken_by is null or not exists (select from idempotent_webhook.processes where number = taken_by)`.
    TakeOnlyFree,
    /// `take.sql`: `paused_at is not null`.
    TakeNotPaused,
    /// `migrations/0002_kept.sql`: `takes` of a new row begins anywhere, so that no attempt at an earlier row has it.
    NewNumbers,
    /// `liveness/other_processes.rs`: a number is deleted after a silence of six seconds.
    GraceOfSilent,
    /// `liveness/other_processes.rs`: each process measures the silence of another one by its own clock, and not by that of
    /// Postgres.
    OwnClock,
    /// `liveness/mod.rs`: a process that is not fresh does not take.
    StopOfSilent,
    /// `liveness/mod.rs`: a process deletes the numbers of processes that are silent.
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
    /// `resend.sql`: not one whose attempt runs.
    ResendLeavesRunning,
    /// `keeper.rs`: `resolve` after a resend.
    ResolveResent,
    /// `keep_failed.sql`: `not exists` of `deliveries`.
    KeepFailedLooks,
    /// `keep_failed.sql`: `known.takes + changes::int`.
    FenceOfKeepFailed,
    /// `kept/result.rs`: `lock.sql` before `keep_failed.sql`.
    KeepFailedWaits,
    /// `record_result.rs`: a duplicate ends what is kept (`resolve.sql`).
    ResolveDuplicate,
    /// `resolve.sql`: `exists (select from processed)`.
    ResolveLooks,
    /// `failure.rs`: a commit in doubt is a 503.
    DoubtIsNo,
    /// `commit.rs`: an aborted transaction is detected.
    AbortedIsNo,
    /// `keep_first.rs`: the answer leaves after the delivery is kept.
    AcceptedIsKept,
    /// `retry.sql`: `takes + 1`.
    FenceOfRetry,
    /// `operation.rs`: a retry leaves one alone whose attempt runs (`is_taken`).
    RetryLeavesRunning,
    /// `operation.rs`: `await_attempt.sql` before `discard.sql`.
    DiscardWaits,
    /// `operation.rs`: the states of what a discard can change.
    DiscardLeavesProcessed,
    /// `operation.rs`: `not_running.sql` before `discard.sql`, for many.
    ManyLeaveRunning,
    /// `operator/filter.rs`: `last_received_at < to_timestamp($13)`. `operation.rs`: `again.received_at >= to_timestamp($4)`.
    ManyLeaveLater,
    /// `operator/mod.rs`: a forget deletes what is kept.
    ForgetDeletesKept,
    /// `reprocess.sql`: `takes + 1`.
    FenceOfReprocess,
    /// `erase.sql`: `takes + 1`.
    FenceOfErase,
    /// `set_aside.sql`: what is discarded or forgotten is remembered.
    SetAside,
    /// `accept.sql`: what reconciliation found is kept only if nobody has set it aside since.
    ListedIsNotSetAside,
    /// `retention/delete.rs`: `remember.sql` in the transaction of the delete.
    RememberPruned,
    /// `redelivery_window.rs`: `age.max(self.length)`.
    RedeliveryWindow,
    /// `retention/delete.rs`: `still_kept.sql`, whose rows are left.
    StillKept,
    /// `row_keys.rs`: `received_at < now() - $4`.
    StillOld,
    /// `lock_resolved.sql`: `for update of kept`.
    ResolvedIsLocked,
    /// `problems.sql`, `fail.sql`: what is to be told is written by the statement that has found it or made it so.
    ToTellIsWritten,
    /// `told_change.sql`, `told_death.sql`: it counts as told after the call of the hook, and not before.
    ToldAfterTheCall,
    /// `problems.rs`, `dead.rs`: a process without a hook takes nothing that is to be told.
    OnlyWithHook,
    /// `tell_change.sql`, `tell_death.sql`: nobody else takes what a process is telling.
    OneTells,
    /// `tell_change.sql`, `tell_death.sql`: but for a time only.
    TellingEnds,
    /// `tell_change.sql`, `problems.sql`: a call that may have been made and was not written is followed by another one.
    DoubtIsToldAgain,
    /// `problems.rs`: a process that was frozen before its call takes the change again.
    NotToldLate,
    /// `told_change.sql`: `tellings = $4`.
    FenceOfToldChange,
    /// `migrations/0002_kept.sql`: `tellings` of a new row begins anywhere, so that no call for an earlier row has it.
    NewTellings,
    /// `problems.sql`: an endpoint that no process serves has no such problem any more.
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
    /// `take_turn.sql`: `turn.next_at not between now()`, also if a process has the turn.
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

/// The guards that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards(u128);

impl Guards {
    /// All of them: the library as it is.
    pub const ALL: Self = Self(u128::MAX);

    /// All but one more.
    pub const fn without(self, guard: Guard) -> Self {
        Self(self.0 & !(1 << guard as u8))
    }

    /// Whether a guard is there.
    pub const fn has(self, guard: Guard) -> bool {
        self.0 & (1 << guard as u8) != 0
    }
}
