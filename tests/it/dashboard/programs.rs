//! The answers of `api/status` and `api/why`, whose JSON format is promised, and who may request them.

use std::collections::BTreeSet;

use serde_json::{Map, json};

use super::*;

const SCHEMA: &str = include_str!("../../../src/documentation/programs.schema.json");

/// The published JSON Schema. The check supports only the parts of JSON Schema that this schema uses, and panics on any
/// other part. It also panics on a field that the schema does not define, although a client would ignore the field.
struct Schema(Value);

impl Schema {
    fn read() -> Self {
        Self(serde_json::from_str(SCHEMA).unwrap())
    }

    /// Asserts that an answer matches a definition of the schema.
    fn check(&self, definition: &str, answer: &Value) {
        self.compare(&self.0["$defs"][definition], answer, definition);
    }

    fn compare(&self, schema: &Value, value: &Value, at: &str) {
        let schema = schema.as_object().unwrap();
        for (keyword, operand) in schema {
            match keyword.as_str() {
                "$ref" => {
                    let name = operand.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    let definition = &self.0["$defs"][name];
                    assert!(definition.is_object(), "{name} is not defined");
                    self.compare(definition, value, at);
                }
                "type" => {
                    let types = list(operand);
                    assert!(
                        types.iter().any(|one| is_of(value, one)),
                        "{at}: {value} has none of the types {types:?}"
                    );
                }
                "enum" => assert!(operand.as_array().unwrap().contains(value), "{at}: {value}"),
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        self.compare(operand, item, &format!("{at}[]"));
                    }
                }
                "required" => {
                    for name in list(operand) {
                        let is_there = value
                            .as_object()
                            .is_none_or(|object| object.contains_key(&name));
                        assert!(is_there, "{at} lacks {name}");
                    }
                }
                "properties" => self.compare_fields(operand.as_object().unwrap(), value, at),
                "format" => {
                    let is_time = |text: &str| text.len() == 20 && text.ends_with('Z');
                    assert_eq!(operand, "date-time");
                    assert!(value.as_str().is_none_or(is_time), "{at}: {value}");
                }
                "title" | "description" => assert!(operand.is_string()),
                other => panic!("the test does not support {other}"),
            }
        }
    }

    fn compare_fields(&self, known: &Map<String, Value>, value: &Value, at: &str) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let schema = known.get(name);
            let schema = schema.unwrap_or_else(|| panic!("{at}.{name} is not in the schema"));
            self.compare(schema, value, &format!("{at}.{name}"));
        }
    }

    fn values_of(&self, definition: &str) -> BTreeSet<String> {
        list(&self.0["$defs"][definition]["enum"])
            .into_iter()
            .collect()
    }
}

/// Reads a text, or a list of texts.
fn list(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().flat_map(list).collect(),
        value => vec![value.as_str().unwrap().to_owned()],
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the test does not support {other}"),
    }
}

impl Board {
    /// Gets an answer for programs, and asserts that it has the promised format.
    async fn promised(&self, address: &str) -> Value {
        let answer = self.json(address).await;
        let definition = address.split('?').next().unwrap();
        Schema::read().check(definition, &answer);
        answer
    }
}

/// If the schema were empty, any answer would match it. It must refuse wrong answers.
#[test]
fn deploy_4_the_schema_refuses_what_is_not_as_it_says() {
    let schema = Schema::read();
    let status = json!({"now": "2026-11-28T16:00:00Z", "well": true, "endpoints": []});
    schema.check("status", &status);
    for (name, wrong) in [
        ("now", json!("yesterday")),
        ("well", json!("yes")),
        ("endpoints", json!([{}])),
        ("more", json!(1)),
    ] {
        let mut status = status.clone();
        status[name] = wrong;
        let checked = std::panic::catch_unwind(|| schema.check("status", &status));
        assert!(checked.is_err(), "{status}");
    }
}

#[test]
fn deploy_4_the_schema_has_the_states_of_the_documentation() {
    let documentation = include_str!("../../../src/dashboard/mod.rs");
    let (_, states) = documentation.split_once("# States of an endpoint").unwrap();
    let (states, _) = states.split_once("//! A process that is killed").unwrap();
    let states = states
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `")?.split('`').next());
    let states: BTreeSet<String> = states.map(str::to_owned).collect();
    assert_eq!(Schema::read().values_of("state"), states);
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_4_status_says_which_endpoint_is_unwell_and_why() {
    let database = Database::new().await;
    let board = Board::operator(&database.pool);
    // With an empty database, nobody can know that all is well.
    assert_eq!(board.promised("status").await["well"], false);

    let app = with_a_dead_delivery().await;
    app.settled().await;
    let board = Board::operator(&app.database.pool);
    let status = board.promised("status").await;
    assert_eq!(status["well"], false);
    let endpoint = &status["endpoints"][0];
    assert_eq!(endpoint["endpoint"], "test");
    assert_eq!(
        (&endpoint["state"], &endpoint["well"]),
        (&json!("failing"), &json!(false))
    );
    assert_eq!(endpoint["dead"], json!({"number": 1, "or_more": false}));
    assert!(
        endpoint["why"][0]
            .as_str()
            .unwrap()
            .starts_with("Deliveries have failed")
    );
    assert_eq!(
        board.promised("status?endpoint=test").await["endpoints"][0],
        *endpoint
    );
    assert_eq!(board.get("api/status?endpoint=other").await.status, 404);

    board.post("act", "action=pause&endpoint=test").await;
    let paused = &board.promised("status").await["endpoints"][0];
    assert_eq!(
        (&paused["state"], &paused["well"], &paused["also"]),
        (&json!("paused"), &json!(false), &json!([]))
    );
    // A worse state hides the pause, which is then listed in `also`.
    app.database
        .run(
            "insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             values ('test', date_trunc('hour', now(), 'UTC'), 'request', 'failed', 1, now())",
        )
        .await;
    let failing = &board.promised("status").await["endpoints"][0];
    assert_eq!(
        (&failing["state"], &failing["also"]),
        (&json!("failing"), &json!(["paused"]))
    );
    board.post("act", "action=resume&endpoint=test").await;
    board.post("act", "action=discard&endpoint=test&id=a").await;
    app.database
        .run("delete from idempotent_webhook.activity")
        .await;
    let status = board.promised("status").await;
    assert_eq!(
        (&status["well"], &status["endpoints"][0]["state"]),
        (&json!(true), &json!("quiet"))
    );
}

/// The answer about the only delivery with this id.
async fn story(board: &Board, id: &str) -> Value {
    let why = board.promised(&format!("why?id={id}")).await;
    assert_eq!(why["deliveries"].as_array().unwrap().len(), 1, "{why}");
    why["deliveries"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_4_why_tells_a_delivery_from_receipt_to_effect() {
    let app = with_a_dead_delivery().await;
    app.settled().await;
    let board = Board::operator(&app.database.pool);
    let why = board.promised("why?id=a").await;
    assert_eq!(why["well"], false);
    let dead = story(&board, "a").await;
    assert_eq!(
        (&dead["state"], &dead["waits_for"]),
        (&json!("dead"), &json!("operator"))
    );
    assert_eq!(dead["attempts"], 1);
    let attempt = &dead["failed_attempts"][0];
    assert_eq!(
        (&attempt["by"], &attempt["status"]),
        (&json!("provider"), &json!(500))
    );
    assert!(dead["processed"].is_null());

    board.post("act", "action=retry&endpoint=test&id=a").await;
    app.database.until(ALL_ENDED).await;
    let due = story(&board, "a").await;
    assert_eq!(
        (&due["state"], &due["waits_for"]),
        (&json!("due"), &json!("recovery"))
    );
    assert!(due["next_attempt"].is_string());

    // An attempt holds the claim of the delivery.
    app.database
        .run(
            "insert into idempotent_webhook.processes values (7, 1);
             update idempotent_webhook.kept_deliveries set taken_by = 7",
        )
        .await;
    let running = story(&board, "a").await;
    assert_eq!(
        (&running["state"], &running["waits_for"]),
        (&json!("running"), &json!("process"))
    );
    assert_eq!(
        (&running["process"], &running["next_attempt"]),
        (&json!(7), &Value::Null)
    );
    app.database
        .run("delete from idempotent_webhook.processes")
        .await;

    assert_eq!(
        app.send(github_delivery().id("b").request()).await.outcome,
        "processed"
    );
    let why = board.promised("why?id=b").await;
    let processed = &why["deliveries"][0];
    assert_eq!(
        (&why["well"], &processed["state"]),
        (&json!(true), &json!("processed"))
    );
    assert!(processed["processed"].is_string());
    assert!(processed["waits_for"].is_null());

    board.post("act", "action=discard&endpoint=test&id=a").await;
    let discarded = story(&board, "a").await;
    assert_eq!(discarded["state"], "discarded");
    assert!(discarded["discarded"].is_string());

    let unknown = board.promised("why?id=unknown").await;
    assert_eq!(
        (&unknown["well"], &unknown["deliveries"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(
        unknown["rejected"],
        json!({"last_24_hours": 0, "before": false})
    );
    assert_eq!(board.get("api/why").await.status, 400);
}

/// Whether the provider sends the delivery again, judged by the layer's answer and the facts about the provider.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_4_why_says_whether_the_provider_sends_it_again() {
    let database = Database::new().await;
    let board = Board::operator(&database.pool);
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, history)
             values ('test', 'a', 'recorded', 1, now(), now(), idempotent_webhook.with_attempt(
                '[]', 'provider', 500::int2, 'it broke'))",
        )
        .await;
    for (settings, expected) in [
        (json!({}), Value::Null),
        (json!({"redelivered_by_provider": true}), json!(true)),
        (json!({"redelivered_by_provider": null}), Value::Null),
        (json!({"redelivered_by_provider": false}), json!(false)),
        // The provider has seen a success.
        (
            json!({"redelivered_by_provider": true, "keep": "failed", "acknowledge": true}),
            json!(false),
        ),
        (
            json!({"redelivered_by_provider": true, "keep": "accepted"}),
            json!(false),
        ),
        (
            json!({"redelivered_by_provider": true, "keep": "failed", "acknowledge": false}),
            json!(true),
        ),
        // The provider has given up by now.
        (
            json!({"redelivered_by_provider": true, "redelivery_window_seconds": 86400}),
            json!(true),
        ),
        (
            json!({"redelivered_by_provider": true, "redelivery_window_seconds": -1}),
            json!(false),
        ),
    ] {
        let told = format!(
            "insert into idempotent_webhook.endpoint_settings (endpoint, version, settings, told_at)
             values ('test', '', '{settings}', now())
             on conflict (endpoint) do update set settings = excluded.settings"
        );
        database.run(&told).await;
        assert_eq!(
            story(&board, "a").await["provider_sends_again"],
            expected,
            "{settings}"
        );
    }
    let told = "update idempotent_webhook.endpoint_settings
        set settings = '{\"redelivered_by_provider\": true, \"keep\": \"failed\"}'";
    database.run(told).await;
    // The delivery was processed, and it is not known by whom. If recovery has processed it, the provider may send it
    // again.
    database.run("insert into idempotent_webhook.deliveries (endpoint, delivery_id) values ('test', 'a')").await;
    assert_eq!(
        story(&board, "a").await["provider_sends_again"],
        Value::Null
    );
    // The provider has seen no failure.
    database
        .run("update idempotent_webhook.kept_deliveries set history = '[]'")
        .await;
    assert_eq!(
        story(&board, "a").await["provider_sends_again"],
        json!(false)
    );
    // Reconciliation found the delivery in the provider's list.
    database
        .run("update idempotent_webhook.kept_deliveries set reconciled = true")
        .await;
    assert_eq!(
        story(&board, "a").await["provider_sends_again"],
        Value::Null
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_4_nobody_reads_status_and_why_without_the_right() {
    let app = with_a_dead_delivery().await;
    let stranger = Board::of(&app.database.pool, Access::none().with_payloads());
    for address in for_programs() {
        let answer = stranger.get(&address).await;
        assert_eq!(answer.status, 403, "{address}");
        assert_eq!(answer.header("content-type"), "application/json");
        for hidden in ["test", "dead", "push", "not yet"] {
            answer.hides(hidden);
        }
    }
    // These counts cover all tenants, so they need the right to see all tenants.
    let of_a_tenant = Board::of(&app.database.pool, Access::operate().of_tenants(["red"]));
    assert_eq!(of_a_tenant.get("api/status").await.status, 403);
    let why = of_a_tenant.promised("why?id=a").await;
    assert_eq!(
        (&why["deliveries"], &why["rejected"]),
        (&json!([]), &Value::Null)
    );
    // These addresses have no HTML page, and accept no POST.
    let board = Board::operator(&app.database.pool);
    for address in for_programs() {
        let page = address.strip_prefix("api/").unwrap();
        assert_eq!(board.get(page).await.status, 404, "{page}");
        let posted = board.order(page, &json!({}), &JSON).await;
        assert_eq!(posted.status, 405, "{page}");
    }
}

/// Nobody sees the names of another endpoint, or of its tenants and deliveries.
#[tokio::test]
async fn deploy_4_status_and_why_hide_another_endpoint_and_another_tenant() {
    let database = Database::new().await;
    database.run(super::authorization::TWO_OF_ALL).await;
    let mine = Board::of(&database.pool, Access::read().of_endpoints(["mine"]));
    let red = Board::of(&database.pool, Access::read().of_tenants(["red"]));
    let names: Vec<Value> = mine.promised("status").await["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|endpoint| endpoint["endpoint"].clone())
        .collect();
    assert_eq!(names, ["mine"]);
    assert_eq!(mine.get("api/status?endpoint=theirs").await.status, 404);
    for kind in ["done", "dead", "discarded"] {
        for (board, seen, hidden) in [
            (&mine, "mine-red", "theirs-red"),
            (&red, "mine-red", "mine-blue"),
        ] {
            let seen = board.promised(&format!("why?id={kind}-{seen}")).await;
            // The rows in `discarded` have ids of their own, so each kind of id is found once.
            assert_eq!(
                seen["deliveries"].as_array().unwrap().len(),
                1,
                "{kind}: {seen}"
            );
            for more in ["", "&endpoint=theirs", "&endpoint=mine&tenant=blue"] {
                let answer = board
                    .promised(&format!("why?id={kind}-{hidden}{more}"))
                    .await;
                assert_eq!(answer["deliveries"], json!([]), "{kind}");
            }
        }
    }
    let one = "why?id=dead-mine-blue&endpoint=mine";
    assert_eq!(mine.promised(one).await["deliveries"][0]["tenant"], "blue");
    let none = format!("{one}&tenant=red");
    assert_eq!(mine.promised(&none).await["deliveries"], json!([]));
}

#[tokio::test]
async fn deploy_4_reasons_are_masked_unless_payloads_may_be_seen() {
    let app = with_a_dead_delivery().await;
    app.database.run(super::authorization::LEAKING).await;
    app.database
        .run(
            "insert into idempotent_webhook.reconciliations
                (endpoint, path, source, begins_at, failure, failed_at)
             values ('test', '/', 'github', now(), 'it answers \"Ada Lovelace\"', now())",
        )
        .await;
    for access in [Access::read(), Access::operate()] {
        let board = Board::of(&app.database.pool, access.clone());
        for address in for_programs() {
            let answer = board.page(&address).await;
            answer.hides("Lovelace");
            answer.hides("4111");
        }
        // With the right to see payloads, the reason is shown in full, but the payload is not part of this answer.
        let board = Board::of(&app.database.pool, access.with_payloads());
        board.page("api/why?id=a").await.shows("Ada Lovelace");
        board.page("api/status").await.shows("Ada Lovelace");
        for address in for_programs() {
            let answer = board.page(&address).await;
            answer.hides("12345678901234567890");
            answer.hides("geheim");
            answer.hides("x-github-delivery");
        }
    }
}
