//! Guarantee Y1 over three simulated months: which reports of new or stopped event types are false, and which come too
//! late or not at all.
//!
//! The crate's statements run at a time that the test sets. Each test prints its findings, which the guide shows as a
//! table.

use sqlx::AssertSqlSafe;
use sqlx::Executor;

use crate::database::plans::source;
use crate::support::Database;

const DAYS: i32 = 91;

/// A problem, and whether it was found, missed or reported falsely (`what`). A type is frequent if it comes at least
/// ten times a day.
#[derive(Debug, sqlx::FromRow)]
struct Judged {
    what: String,
    problem: String,
    name: String,
    since: f64,
    is_frequent: bool,
    /// How many days after its start the problem was found.
    after: Option<f64>,
}

/// A SQL function that runs a statement of the crate at a given time.
fn function(name: &str, statement: &str, values: &str, time: &str) -> String {
    let text = &source::statements()[&format!("activity/statements.rs:{statement}")];
    let (text, _) = text.split_once("-- `xmax`").unwrap_or((text, ""));
    let text = text.replace("now()", time);
    format!(
        "create function months.{name}({values}) returns void language plpgsql as $x$ begin {text}; end $x$"
    )
}

async fn judge(shape: &str) -> Vec<Judged> {
    let database = Database::new().await;
    let functions = [
        function(
            "see",
            "ADD_TYPES",
            "text, text[], bool[], bigint, timestamptz",
            "$5",
        ),
        function("trim", "TRIM_TYPES", "text, bigint", ""),
        function(
            "tell",
            "TELL_SETTINGS",
            "text[], text[], text[], timestamptz",
            "$4",
        ),
    ];
    let mut connection = database.pool.acquire().await.unwrap();
    let all = [include_str!("schema.sql").to_owned()]
        .into_iter()
        .chain(functions)
        .chain([
            shape.to_owned(),
            format!("select months.fill({DAYS})"),
            format!("select months.run({DAYS})"),
        ]);
    for sql in all {
        connection
            .execute(sqlx::raw_sql(AssertSqlSafe(sql)))
            .await
            .unwrap();
    }
    let judged: Vec<Judged> =
        sqlx::query_as("select * from months.judged order by what, problem, since, name")
            .fetch_all(&mut *connection)
            .await
            .unwrap();
    for one in &judged {
        let kind = if one.is_frequent { "frequent" } else { "rare" };
        let after = one.after.map(|days| format!(", after {days:.1} days"));
        println!(
            "{}: {} {} ({kind}) on day {:.1}{}",
            one.what,
            one.problem,
            one.name,
            one.since,
            after.unwrap_or_default()
        );
    }
    // A few false alarms about rare types are allowed.
    let is_false = judged.iter().filter(|one| one.what == "false");
    assert!(is_false.count() <= 8, "{judged:#?}");
    judged
}

/// No alarm about a frequent type is missed, and at most one alarm a month is false.
fn assert_frequent_types_are_told(judged: &[Judged]) {
    let frequent = |what: &str| {
        let of_kind = judged
            .iter()
            .filter(|one| one.is_frequent && one.what == what);
        of_kind.collect::<Vec<_>>()
    };
    assert!(frequent("missed").is_empty(), "{judged:#?}");
    assert!(frequent("false").len() <= 3, "{judged:#?}");
}

/// Most invoices come at the start of a month. The endpoint was unreachable for four days.
#[tokio::test]
async fn y1_three_months_of_a_subscription_business() {
    let judged = judge(include_str!("subscriptions.sql")).await;
    assert_frequent_types_are_told(&judged);
    assert_eq!(judged.iter().filter(|one| one.what == "found").count(), 3);
}

/// There are outages, two days with few events, and a new version that has a tenth of the events for two days and is
/// rolled back.
#[tokio::test]
async fn y1_three_months_of_a_shop() {
    let judged = judge(include_str!("shop.sql")).await;
    assert_frequent_types_are_told(&judged);
    assert_eq!(judged.iter().filter(|one| one.what == "found").count(), 3);
}

/// People do not work on weekends and holidays, while hourly checks continue. The endpoint was unreachable for four
/// days.
#[tokio::test]
async fn y1_three_months_of_a_team() {
    let judged = judge(include_str!("team.sql")).await;
    assert_frequent_types_are_told(&judged);
    assert_eq!(judged.iter().filter(|one| one.what == "found").count(), 3);
}

/// No type is frequent, so nothing is promised, but types that stop or are renamed are reported.
#[tokio::test]
async fn y1_three_months_of_two_events_a_day() {
    let judged = judge(include_str!("two_a_day.sql")).await;
    assert_eq!(judged.iter().filter(|one| one.what == "found").count(), 3);
}
