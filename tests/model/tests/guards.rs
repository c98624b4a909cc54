//! Removes one guard at a time. Without the guard, the property named next to it breaks, and the shortest
//! counterexample has exactly the given number of steps. `Configuration::of` has two requests and one handler that
//! fails, and `Telling::of` has two changes.

use model::checker::{Found, Model, Trace, check};
use model::configuration::{Action, Configuration, Keep};
use model::guards::Guard::{self, *};
use model::places::Places;
use model::properties::Property::{self, *};
use model::telling::{Changes, Deaths, Telling};
use model::turns::Turns;

const FAILED: Configuration = Configuration::of(Keep::Failed);
const ALL: Configuration = Configuration::of(Keep::All);
const ACCEPT_FIRST: Configuration = Configuration::of(Keep::AcceptFirst);

/// A delivery that reconciliation finds in the provider's list.
fn listed(of: Configuration) -> Configuration {
    of.budget(|left| left.lists = 1)
}

/// With a process that is killed.
fn killed(of: Configuration) -> Configuration {
    of.budget(|left| left.crashes = 1)
}

/// With a process that sends no heartbeat for a while.
fn silent(of: Configuration) -> Configuration {
    of.budget(|left| left.silences = 1)
}

/// With an answer of Postgres that gets lost.
fn lost(of: Configuration) -> Configuration {
    of.budget(|left| left.losses = 1)
}

#[track_caller]
fn breaks(guard: Guard, of: Configuration, property: Property, steps: usize) {
    breaks_in(guard, of.without(guard), property, steps);
}

#[track_caller]
fn breaks_in(guard: Guard, without: impl Model, property: Property, steps: usize) {
    let trace = match check(without) {
        Found::Counterexample(trace) => trace,
        Found::Nothing { states } => panic!("{guard:?} protects nothing, in {states} states"),
    };
    println!("without {guard:?}:\n{trace}");
    let Trace {
        broken,
        steps: found,
    } = trace;
    assert_eq!((broken, found.len()), (property, steps), "{guard:?}");
}

#[test]
fn the_claim() {
    breaks(OneClaim, FAILED, OneEffect, 8);
    let discards = listed(FAILED).operator(Action::Discard, 1);
    breaks(LockOfClaim, discards, DiscardedDoesNotCommit, 7);
    breaks(Superseded, discards, DiscardedDoesNotCommit, 7);
    breaks(FenceOfClaim, silent(ALL), TheOvertakenWriteNothing, 9);
    breaks(
        OnlyDueIsClaimed,
        listed(FAILED),
        TheOvertakenWriteNothing,
        10,
    );
    breaks(IdleTimeout, killed(ALL), Stuck, 6);
}

#[test]
fn another_driver() {
    let recovers = silent(ALL.other_driver());
    breaks(FenceOfFunction, recovers, TheOvertakenWriteNothing, 11);
    let succeeds = FAILED.other_driver().budget(|left| left.failures = 0);
    let forgets = listed(succeeds).operator(Action::Forget, 1);
    breaks(FenceOfFunction, forgets, OneEffect, 16);
}

#[test]
fn versions() {
    breaks(HandlerIsThere, ALL.versions(), ProcessedByItsHandler, 11);
    let acknowledged = ACCEPT_FIRST.versions();
    breaks(HandlerIsThere, acknowledged, ProcessedByItsHandler, 8);
}

#[test]
fn what_the_handler_is_told() {
    let reprocessed = FAILED.archives().operator(Action::Reprocess, 1);
    breaks(
        SameReprocessed,
        reprocessed.claims_late(),
        TheToldIsTrue,
        18,
    );
}

#[test]
fn what_is_kept_ends_in_the_transaction_of_the_claim() {
    let reprocessed = FAILED.archives().retention().operator(Action::Reprocess, 1);
    breaks(EndInTheTransaction, lost(reprocessed), OneEffect, 26);
}

#[test]
fn results() {
    breaks(FenceOfFail, silent(ALL), TheOvertakenWriteNothing, 9);
    breaks(
        OnlyDueFails,
        lost(ALL.archives()),
        TheOvertakenWriteNothing,
        8,
    );
    breaks(FenceOfGiveBack, silent(ALL), TheOvertakenWriteNothing, 8);
    let takes_ahead = silent(FAILED);
    breaks(
        FenceOfGiveBackAhead,
        takes_ahead,
        TheOvertakenWriteNothing,
        10,
    );
    let erases = listed(FAILED).operator(Action::Erase, 1);
    breaks(FenceOfDrop, erases, TheOvertakenWriteNothing, 7);
    let discards = ALL.operator(Action::Discard, 1);
    breaks(NewNumbers, discards, TheOvertakenWriteNothing, 9);
    breaks(
        FenceOfKeepFailed,
        lost(ALL.archives()),
        TheOvertakenWriteNothing,
        13,
    );
    breaks(
        FenceOfResend,
        lost(ACCEPT_FIRST.archives()),
        TheOvertakenWriteNothing,
        14,
    );
    breaks(ResolveDuplicate, lost(FAILED), Livelock, 14);
    breaks(ResolveLooks, ACCEPT_FIRST, KeptIsNotLost, 7);
}

#[test]
fn processes() {
    breaks(TakeOnlyFree, listed(FAILED), TheLivingAreNotOvertaken, 4);
    breaks(GraceOfSilent, listed(FAILED), TheLivingAreNotOvertaken, 5);
    breaks(HoldNumber, listed(FAILED), TheLivingAreNotOvertaken, 5);
    breaks(StopOfSilent, silent(ACCEPT_FIRST), Livelock, 8);
    breaks(Expire, killed(ALL), Stuck, 4);
    let stepped = listed(FAILED).budget(|left| left.clock_steps = 1);
    breaks(OwnClock, stepped, TheLivingAreNotOvertaken, 6);
    breaks(GiveUp, lost(ACCEPT_FIRST), Stuck, 6);
}

#[test]
fn answers() {
    breaks(DoubtIsNo, lost(FAILED), AcknowledgedIsSafe, 5);
    breaks(AbortedIsNo, FAILED, AcknowledgedIsSafe, 5);
    breaks(AcceptedIsKept, ACCEPT_FIRST, AcknowledgedIsSafe, 1);
    let erases = ALL.operator(Action::Erase, 1);
    breaks(KeptAsWritten, erases, KeptIsTrue, 6);
}

#[test]
fn operators() {
    let pauses = listed(FAILED).operator(Action::Pause, 1);
    breaks(TakeNotPaused, pauses, PausedDoesNotBegin, 4);
    let retries = ALL.operator(Action::Retry, 1);
    breaks(FenceOfRetry, silent(retries), TheOvertakenWriteNothing, 9);
    breaks(RetryLeavesRunning, retries, TheLivingAreNotOvertaken, 4);
    let discards = listed(FAILED).operator(Action::Discard, 1);
    breaks(DiscardWaits, discards, DiscardedDoesNotCommit, 7);
    let discards = listed(FAILED).operator(Action::DiscardAll, 1);
    breaks(ManyLeaveRunning, discards, DiscardedDoesNotCommit, 8);
    let discards = ACCEPT_FIRST.operator(Action::DiscardAll, 1);
    breaks(ManyLeaveLater, discards, AcknowledgedIsSafe, 5);
    let forgets = FAILED.operator(Action::Forget, 1);
    breaks(ForgetDeletesKept, lost(forgets), OneEffect, 13);
    breaks(SetAside, listed(forgets), OneEffect, 12);
    let reprocesses = FAILED.archives().operator(Action::Reprocess, 1);
    breaks(
        FenceOfReprocess,
        silent(reprocesses),
        TheOvertakenWriteNothing,
        12,
    );
}

#[test]
fn upkeep() {
    let discards = listed(FAILED).operator(Action::Discard, 1);
    breaks(ListedIsNotSetAside, discards, SetAsideIsNotMissing, 6);
    breaks(RememberPruned, listed(FAILED.retention()), OneEffect, 18);
    breaks(RedeliveryWindow, FAILED.retention(), OneEffect, 11);
    breaks(StillKept, lost(FAILED.retention()), OneEffect, 17);
    let reprocesses = FAILED.archives().retention().operator(Action::Reprocess, 1);
    breaks(ResolvedIsLocked, lost(reprocesses), KeptIsNotLost, 13);
}

const ONE_TELLS: Telling = Telling::of([true, false]);
const BOTH_TELL: Telling = Telling::of([true, true]);

#[test]
fn what_is_told_of_problems() {
    let breaks = |guard, of: Telling, property, steps| {
        breaks_in(guard, Changes(of.without(guard)), property, steps);
    };
    let once = |of: Telling| of.budget(|left| left.changes = 1);
    let killed = |of: Telling| of.budget(|left| left.crashes = 1);
    let frozen = |of: Telling| of.budget(|left| (left.changes, left.freezes) = (3, 1));
    breaks(ToTellIsWritten, once(killed(BOTH_TELL)), Stuck, 3);
    breaks(ToldAfterTheCall, killed(ONE_TELLS), Stuck, 4);
    breaks(OnlyWithHook, once(ONE_TELLS), Stuck, 5);
    breaks(OneTells, BOTH_TELL, ToldOnce, 6);
    breaks(TellingEnds, killed(ONE_TELLS), Stuck, 4);
    breaks(DoubtIsToldAgain, killed(ONE_TELLS), Stuck, 9);
    breaks(NotToldLate, frozen(BOTH_TELL), Stuck, 11);
    breaks(FenceOfToldChange, frozen(BOTH_TELL), Stuck, 13);
    breaks(NewTellings, frozen(killed(BOTH_TELL)), Stuck, 15);
    let removed = ONE_TELLS.budget(|left| left.deploys = 1);
    breaks(RemovedIsOver, removed, Stuck, 6);
}

#[test]
fn what_is_told_of_dead_deliveries() {
    let breaks = |guard, of: Telling, property, steps| {
        breaks_in(guard, Deaths(of.without(guard)), property, steps);
    };
    let killed = |of: Telling| of.budget(|left| left.crashes = 1);
    breaks(ToTellIsWritten, killed(ONE_TELLS), Stuck, 2);
    breaks(TellingEnds, killed(ONE_TELLS), Stuck, 2);
    breaks(OnlyWithHook, killed(ONE_TELLS), Stuck, 6);
    breaks(OneTells, BOTH_TELL, ToldOnce, 4);
    let twice = ONE_TELLS.budget(|left| left.crashes = 2);
    breaks(ToldAfterTheCall, twice, Stuck, 5);
    breaks(FenceOfToldDeath, killed(BOTH_TELL), Stuck, 6);
}

#[test]
fn places_of_the_pool() {
    let breaks = |guard, silences, property, steps| {
        breaks_in(guard, Places::of(silences).without(guard), property, steps);
    };
    breaks(PlaceIsKept, 0, BackendsAreBounded, 5);
    breaks(HandlerIsCancelled, 0, Stuck, 3);
    breaks(CommitIsNotCancelled, 0, VisibleIsReplicated, 4);
    breaks(SilentIsClosed, 1, Stuck, 4);
    breaks(RunningIsNotClosed, 1, BackendsAreBounded, 7);
}

#[test]
fn turns() {
    let breaks = |guard, of: Turns, property, steps| {
        breaks_in(guard, of.without(guard), property, steps);
    };
    let well = Turns::new();
    let killed = Turns { crashes: 1, ..well };
    let stepped = Turns {
        clock_steps: 1,
        ..killed
    };
    let frozen = Turns {
        silences: 1,
        ..well
    };
    let asked = Turns {
        on_request: true,
        ..well
    };
    breaks(TurnOfOne, well, TheLivingAreNotOvertaken, 2);
    breaks(TurnEnds, killed, Stuck, 3);
    breaks(LongestTurn, stepped, Stuck, 3);
    breaks(RequestWaits, asked, TheLivingAreNotOvertaken, 2);
    breaks(FenceOfTurn, frozen, TheOvertakenWriteNothing, 6);
    breaks(TurnIsExtended, well, TheLivingAreNotOvertaken, 3);
}

/// No property needs these guards. The documentation of the crate says what they are for.
#[test]
fn some_only_save_work() {
    for guard in [
        LookAgain,
        AcceptLooks,
        ResendLooks,
        ResendLeavesRunning,
        ResolveResent,
        KeepFailedLooks,
        KeepFailedWaits,
        DiscardLeavesProcessed,
        FenceOfErase,
        StillOld,
    ] {
        for of in [FAILED, ALL, ACCEPT_FIRST] {
            let operated = of.archives().retention().operator(Action::Any, 1);
            for of in [lost(of), operated] {
                if let Found::Counterexample(trace) = check(of.without(guard)) {
                    panic!("{guard:?} protects something:\n{trace}");
                }
            }
        }
    }
}
