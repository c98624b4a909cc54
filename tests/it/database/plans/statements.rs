//! The statements of the crate, and values to run them with.

/// The transaction in which a statement runs.
#[derive(Clone, Copy)]
pub enum In {
    /// A transaction of the crate's own.
    Own,
    /// The transaction of an operator's action.
    Operation,
    /// The transaction of a claim, before the handler gets it.
    Claim,
    /// The transaction of a handler, with its settings.
    Handler,
}

use self::In::{Claim, Handler, Operation, Own};

/// Names that the values below use as abbreviations of several values.
pub const NAMED: [(&str, &str); 4] = [
    ("KEYS", "'{test,test}', '{\"\",\"\"}', '{due,dead}'"),
    ("KEY", "'test', '', 'due'"),
    (
        "PROCESSED",
        "'{test,test}', '{\"\",\"\"}', '{archived,claimed}'",
    ),
    ("LIST", "'test', '/', 'list'"),
];

/// Each statement, with values in the syntax of `execute`.
pub const STATEMENTS: &[(&str, In, &str)] = &[
    (
        "activity/readings.rs:READ",
        Own,
        "'{test}', 'new event type', 'event type stopped'",
    ),
    (
        "activity/statements.rs:ADD_COUNTS",
        Own,
        "'{test}', '{\"\"}', '{request}', '{processed}', '{1}'",
    ),
    (
        "activity/statements.rs:ADD_REJECTIONS",
        Own,
        "'{test}', '{no_match}', '{1}', '{reason}'",
    ),
    (
        "activity/statements.rs:ADD_TYPES",
        Own,
        "'test', '{push}', '{true}', 1000",
    ),
    (
        "activity/statements.rs:OF_ITS_PROVIDER",
        Own,
        "'test', '{test}'",
    ),
    (
        "activity/statements.rs:TELL_SETTINGS",
        Own,
        "'{test}', '{\"\"}', '{\"{}\"}'",
    ),
    ("activity/statements.rs:TRIM_TYPES", Own, "'test', 1000"),
    ("maintenance/migrate.rs:APPLIED", Own, ""),
    ("maintenance/migrate.rs:FUNCTIONS_THERE", Own, ""),
    (
        "maintenance/retention/activity.sql",
        Own,
        "'30 days'::interval",
    ),
    (
        "maintenance/retention/dead.sql",
        Own,
        "'test', '30 days'::interval",
    ),
    (
        "maintenance/retention/delete.rs:DELETE_OLD discarded",
        Own,
        "KEYS, '30 days'::interval",
    ),
    (
        "maintenance/retention/delete.rs:DELETE_OLD kept_deliveries",
        Own,
        "KEYS, '30 days'::interval",
    ),
    (
        "maintenance/retention/delete.rs:DELETE_OLD subjects",
        Own,
        "KEYS, '30 days'::interval",
    ),
    (
        "maintenance/retention/delete.rs:SELECT_OLD archived",
        Own,
        "'test', '30 days'::interval, 0",
    ),
    (
        "maintenance/retention/delete.rs:SELECT_OLD dead",
        Own,
        "'test', '30 days'::interval, 0",
    ),
    (
        "maintenance/retention/delete.rs:SELECT_OLD deliveries",
        Own,
        "'test', '30 days'::interval, 0",
    ),
    (
        "maintenance/retention/delete.rs:SELECT_OLD discarded",
        Own,
        "'test', '30 days'::interval, 0",
    ),
    (
        "maintenance/retention/delete.rs:SELECT_OLD erased",
        Own,
        "'test', '30 days'::interval, 0",
    ),
    (
        "maintenance/retention/delete.rs:SELECT_OLD recorded",
        Own,
        "'test', '30 days'::interval, 0",
    ),
    (
        "maintenance/retention/delete.rs:SELECT_OLD subjects",
        Own,
        "'test', '30 days'::interval, 0",
    ),
    ("maintenance/retention/delete_resolved.sql", Own, "KEYS"),
    ("maintenance/retention/lock_resolved.sql", Own, "KEYS"),
    (
        "maintenance/retention/records.sql",
        Own,
        "'30 days'::interval",
    ),
    ("maintenance/retention/redelivery_window.rs:ALL", Own, ""),
    (
        "maintenance/retention/redelivery_window.rs:LONGEST",
        Own,
        "",
    ),
    (
        "maintenance/retention/remember.sql",
        Own,
        "'test', '30 days'::interval",
    ),
    ("maintenance/retention/sent_again.sql", Own, ""),
    ("maintenance/retention/still_kept.sql", Own, "KEYS"),
    ("maintenance/retention/still_processed.sql", Own, "KEYS"),
    (
        "provider_api/reconcile/sql/begin_round.sql",
        Own,
        "LIST, 0, 0, false, 0, 1, false, null",
    ),
    (
        "provider_api/reconcile/sql/close_gap.sql",
        Own,
        "LIST, 0, 1",
    ),
    (
        "provider_api/reconcile/sql/end_round.sql",
        Own,
        "LIST, true, null, false, 0, false, 0, 1",
    ),
    ("provider_api/reconcile/sql/known.sql", Own, "LIST, false"),
    (
        "provider_api/reconcile/sql/missing.sql",
        Own,
        "'test', '{\"\",\"\",\"\"}', '{due,claimed,new}', '{1,1,1}', '1 minute'::interval, '1 day'::interval",
    ),
    (
        "provider_api/reconcile/sql/note_asked.sql",
        Own,
        "'test', '', 'new'",
    ),
    (
        "provider_api/reconcile/sql/note_progress.sql",
        Own,
        "LIST, 'page', 0, null, false",
    ),
    (
        "recovery/kept/accept.sql",
        Own,
        "'test', '{\"\",\"\",\"\"}', '{due,claimed,new}', '{a,a,a}', '{b,b,b}', '{1,1,1}', '{1,1,1}', '{1,1,1}', \
         '{POST,POST,POST}', '{/,/,/}', array['', '', '']::bytea[], array['', '', '']::bytea[], '{1,1,1}', true, true, null, null",
    ),
    ("recovery/kept/await_attempt.sql", Operation, "KEYS"),
    ("recovery/kept/close_breaker.sql", Own, "'test'"),
    ("recovery/kept/discard.sql", Operation, "KEYS"),
    ("recovery/kept/drop.sql", Own, "KEY, null"),
    ("recovery/kept/erase.sql", Operation, "KEYS"),
    ("recovery/kept/expire.sql", Own, "'{1}', '{1}'"),
    (
        "recovery/kept/fail.sql",
        Own,
        "'test', '', 'taken', 500::smallint, 'reason', 'due', '1 hour'::interval, 0, 5, 3, '1 minute'::interval, 'recovery', null",
    ),
    ("recovery/kept/failing.sql", Own, "'{test}', 5"),
    (
        "recovery/kept/give_back.sql",
        Own,
        "'test', '', 'taken', 5, '1 minute'::interval, 1, false, null",
    ),
    (
        "recovery/kept/give_back_ahead.sql",
        Own,
        "'{test,test}', '{\"\",\"\"}', '{due,taken}', '{5,5}'",
    ),
    ("recovery/kept/heartbeat.sql", Own, "'{1}', '{2}', 5"),
    ("recovery/kept/is_full.sql", Own, "'test', 5, 1000000"),
    ("recovery/kept/is_known.sql", Own, "KEY"),
    (
        "recovery/kept/keep_failed.sql",
        Own,
        "KEY, null, 'push', 'due', 0, '1 hour'::interval, 500::smallint, 'reason', 'POST', '/', ''::bytea, ''::bytea, null, false, null, null",
    ),
    (
        "recovery/kept/leave_known.sql",
        Own,
        "'{test,test}', '{\"\",\"\"}', '{due,archived}'",
    ),
    ("recovery/kept/lock.sql", Own, "KEY, '1s'"),
    ("recovery/kept/next.sql", Own, "'{test}', null"),
    ("recovery/kept/not_running.sql", Operation, "KEYS"),
    ("recovery/kept/note_resent.sql", Own, "KEY"),
    ("recovery/kept/pause.sql", Own, "'test'"),
    (
        "recovery/kept/problems.sql",
        Own,
        "true, '{failing,probing,unreached,unserved,silent}'",
    ),
    ("recovery/kept/reprocess.sql", Operation, "PROCESSED"),
    ("recovery/kept/requests.sql", Own, "KEYS"),
    (
        "recovery/kept/resend.sql",
        Own,
        "KEY, null, 'push', 0, 1, 'POST', '/', ''::bytea, ''::bytea, null, null, null",
    ),
    ("recovery/kept/resolve.sql", Own, "'test', '', 'archived'"),
    ("recovery/kept/resume.sql", Own, "'test'"),
    ("recovery/kept/retry.sql", Operation, "KEYS"),
    ("recovery/kept/serve.sql", Own, "'{test}', '{recovery}'"),
    ("recovery/kept/set_aside.sql", Own, "KEYS, false"),
    (
        "recovery/kept/start_probe.sql",
        Own,
        "'test', '1 minute'::interval",
    ),
    ("recovery/kept/take.rs:IS_UNSERVED", Own, "'test'"),
    (
        "recovery/kept/take.sql",
        Own,
        "'test', 4, null, 1, false, null",
    ),
    (
        "recovery/kept/tell_change.sql",
        Own,
        "'{failing}', '1 minute'::interval, null",
    ),
    (
        "recovery/kept/tell_death.sql",
        Own,
        "'{test}', '1 minute'::interval, null",
    ),
    ("recovery/kept/to_rehearse.sql", Own, "KEY"),
    (
        "recovery/kept/told_change.sql",
        Own,
        "'test', 'failing', true, 1, ''",
    ),
    ("recovery/kept/told_death.sql", Own, "'test', '', 'dead', 5"),
    ("recovery/kept/unserved.sql", Own, "5"),
    (
        "recovery/kept/what_became.sql",
        Own,
        "KEY, '1 minute'::interval",
    ),
    ("recovery/operator/adopt.rs:BEFORE", Own, ""),
    ("recovery/operator/adopt.rs:FORGET_OTHER", Own, "'staging'"),
    ("recovery/operator/adopt.rs:SET", Own, "'staging'"),
    ("recovery/operator/adopt.sql", Own, "null, 'staging'"),
    ("recovery/operator/mod.rs:LOCK_KEPT", Operation, "KEYS"),
    ("recovery/operator/mod.rs:PROCESSED", Operation, "KEYS"),
    ("recovery/operator/mod.rs:ARCHIVED", Operation, "PROCESSED"),
    (
        "recovery/operator/operation.rs:LOCK",
        Operation,
        "'test', null, '{due,dead}', null, null, null, null, null, null, null, null, null, 4000000000, 'retry', \
         '{\"\",\"\"}', '{due,dead}'",
    ),
    (
        "recovery/operator/operation.rs:SENT_AGAIN",
        Operation,
        "KEYS, 0",
    ),
    ("provider_api/subscriptions/sql/begin.sql", Own, "LIST, ''"),
    (
        "provider_api/subscriptions/sql/end.sql",
        Own,
        "LIST, '{}', null",
    ),
    (
        "provider_api/subscriptions/sql/look.sql",
        Own,
        "'test', '/', 'list', '', '1 hour'::interval",
    ),
    (
        "transaction/claim.sql",
        Claim,
        "'test', '', 'due', 'push', null, '1s', '1s', '1s', '1s', 'on'",
    ),
    (
        "transaction/end_with_claim.sql",
        Handler,
        "KEY, null, '', '1s'",
    ),
    ("transaction/as_read.sql", Claim, "KEY, 'due', 5, 'on'"),
    ("transaction/environment.rs:HAS_ENVIRONMENT", Own, ""),
    ("transaction/environment.rs:IS_HOME", Own, "'production'"),
    ("transaction/environment.rs:LOOK", Own, "'production'"),
    (
        "transaction/environment.rs:NAME_DATABASE",
        Own,
        "'production'",
    ),
    (
        "transaction/first_with_body.sql",
        Claim,
        "'test', '', '\\x01'",
    ),
    ("transaction/keep_object.sql", Claim, "'test', '', 'object'"),
    (
        "transaction/lock_object.sql",
        Claim,
        "'test', '', 'object', '1s', '1s'",
    ),
    ("transaction/look_up.sql", Own, "KEY"),
    (
        "transaction/recency.rs:ADVANCE",
        Handler,
        "'test', '', 'due', 1",
    ),
    (
        "transaction/registration.rs:DELETE_OUTDATED",
        Claim,
        "'test', 60",
    ),
    ("transaction/registration.rs:REGISTER", Claim, "'test', 60"),
    ("transaction/rehearse.sql", Handler, "KEY, '1s', '1s', '1s'"),
    (
        "transaction/replay_guard.sql",
        Handler,
        "'test', '', '\\x01', 'due', '1s', '1s', '1s'",
    ),
    (
        "transaction/row_keys.rs:DELETE_BODIES",
        Own,
        "PROCESSED, null",
    ),
    (
        "transaction/row_keys.rs:DELETE_CLAIMS",
        Own,
        "PROCESSED, null",
    ),
    (
        "transaction/take_turn.sql",
        Own,
        "'retention', '', '', '', 1, '10 minutes'::interval, '10 minutes'::interval, true, null",
    ),
    (
        "transaction/turn.rs:END",
        Own,
        "'retention', '', '', '', 1, '1 hour'::interval, null",
    ),
    (
        "transaction/turn.rs:EXTEND",
        Own,
        "'retention', '', '', '', 1, '10 minutes'::interval, null",
    ),
    (
        "transaction/turn.rs:WAIT",
        Own,
        "'retention', '', '', '', '10 minutes'::interval",
    ),
];

/// The statements that this test does not run, each with the reason.
pub const NOT_RUN: &[(&str, &str)] = &[
    (
        "dashboard/",
        "each page has its statements planned for their values (`dashboard/database.rs`), and D4 limits what it reads",
    ),
    (
        "maintenance/retention/resolved.sql",
        "retention reads once a round what has failed and waits",
    ),
    (
        "recovery/rehearsal/kept_endpoints.sql",
        "a rehearsal asks once which endpoints have something kept",
    ),
    (
        "transaction/written.sql",
        "reads which tables there are, and none of them",
    ),
    (
        "transaction/refuse_commits.sql",
        "declares a cursor, and reads nothing",
    ),
    (
        "recovery/operator/bulk.rs:CHOOSE",
        "is planned for its values (`plan_for_values`), and reads what its filter means",
    ),
    (
        "recovery/operator/list.rs:COUNT",
        "the same, up to its limit",
    ),
    ("recovery/operator/list.rs:PROCESSED", "the same"),
    ("recovery/operator/list.rs:UNPROCESSED", "the same"),
    ("recovery/operator/newest.rs:NEWEST", "the same"),
    (
        "recovery/operator/operation.rs:AWAIT_LISTS",
        "locks a table, and reads nothing",
    ),
    (
        "recovery/kept/accept.rs:HOLD_DISCARDED",
        "locks a table, and reads nothing",
    ),
];
