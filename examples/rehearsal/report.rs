//! The report of a rehearsal: a table for people, and JSON for machines.

use std::fmt::Write;

use idempotent_webhook::recovery::{RehearsalReport, RehearsedDelivery, RehearsedType};
use serde_json::{Map, Value, json};

/// A line for each type of each endpoint, and one delivery for each list that is not empty.
pub fn table(report: &RehearsalReport) -> String {
    let mut table = format!(
        "{:<30} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "", "as before", "mended", "broken", "failing", "not run"
    );
    for of in &report.types {
        let name = format!(
            "{} {}",
            of.endpoint,
            of.event_type.as_deref().unwrap_or("-")
        );
        let _ = writeln!(
            table,
            "{name:<30} {:>9} {:>9} {:>9} {:>9} {:>9}",
            of.processed_again,
            of.processed_now,
            of.fails_now.len(),
            of.fails_again.len(),
            of.not_run.len()
        );
        for (what, listed) in lists(of) {
            if let Some(first) = listed.first() {
                let _ = writeln!(table, "  {what}: {}: {}", first.delivery_id, first.reason);
            }
        }
    }
    for refused in &report.refused {
        let _ = writeln!(
            table,
            "{} was not rehearsed: {}",
            refused.endpoint, refused.reason
        );
    }
    table
}

pub fn json(report: &RehearsalReport) -> Value {
    let delivery = |of: &RehearsedDelivery| json!({"delivery_id": of.delivery_id, "tenant": of.tenant, "reason": of.reason});
    let types = report.types.iter().map(|of| {
        let listed = lists(of).map(|(what, listed)| {
            let listed = listed.iter().map(delivery).collect();
            (what.to_owned(), listed)
        });
        let counted = [
            ("as before".to_owned(), of.processed_again.into()),
            ("mended".to_owned(), of.processed_now.into()),
        ];
        json!({
            "endpoint": of.endpoint,
            "event_type": of.event_type,
            "found": Map::from_iter(counted.into_iter().chain(listed)),
        })
    });
    let refused = report
        .refused
        .iter()
        .map(|of| json!({"endpoint": of.endpoint, "reason": of.reason}));
    json!({
        "types": types.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}

fn lists(of: &RehearsedType) -> [(&'static str, &[RehearsedDelivery]); 4] {
    [
        ("broken", &of.fails_now),
        ("failing", &of.fails_again),
        ("not run", &of.not_run),
        ("suspicious", &of.suspicious),
    ]
}
