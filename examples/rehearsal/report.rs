//! The report of a rehearsal as JSON, for machines.

use idempotent_webhook::recovery::{RehearsalReport, RehearsedDelivery, RehearsedType};
use serde_json::{Map, Value, json};

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
    let refused = report.refused.iter().map(
        |of| json!({"endpoint": of.endpoint, "reason": of.reason, "is_expected": of.is_expected}),
    );
    json!({
        "passed": report.passed(),
        "error": report.error,
        "types": types.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}

fn lists(of: &RehearsedType) -> [(&'static str, &[RehearsedDelivery]); 5] {
    [
        ("ignored", &of.ignored_now),
        ("broken", &of.fails_now),
        ("failing", &of.fails_again),
        ("not run", &of.not_run),
        ("suspicious", &of.suspicious),
    ]
}
