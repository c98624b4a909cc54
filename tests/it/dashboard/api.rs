//! The pages for programs.

use serde_json::json;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_program_reads_what_the_pages_show() {
    let app = with_a_dead_delivery().await;
    app.settled().await;
    let board = Board::operator(&app.database.pool);
    for page in pages().filter(|page| !page.starts_with("confirm")) {
        board.json(page).await;
    }
    let overview = board.json("overview").await;
    let endpoint = &overview["endpoints"][0];
    assert_eq!(endpoint["endpoint"], "test");
    assert_eq!(endpoint["state"], "failing");
    assert_eq!(endpoint["dead"], json!({"number": 1, "or_more": false}));
    assert_eq!(endpoint["hours"].as_array().unwrap().len(), 24);
    assert_eq!(overview["failing"][0]["deliveries"]["number"], 1);
    let group = overview["failing"][0]["reason_group"].as_str().unwrap();

    let dead = board
        .json(&format!(
            "deliveries?state=dead&endpoint=test&reason={group}"
        ))
        .await;
    let delivery = &dead["deliveries"][0];
    assert_eq!(delivery["endpoint"], "test");
    assert_eq!(delivery["id"], "a");
    assert_eq!(delivery["attempts"], 1);
    assert!(delivery["last_failed"].as_str().unwrap().ends_with('Z'));
    assert_eq!(dead["next"], Value::Null);

    let delivery = board.json("delivery?endpoint=test&id=a").await;
    assert_eq!(delivery["state"], "dead");
    assert_eq!(delivery["request"]["uri"], "/?token=geheim");
    assert_eq!(delivery["kept"]["failed_attempts"][0]["by"], "provider");
    let payload = board.get("api/payload?endpoint=test&id=a").await;
    assert_eq!(payload.text(), r#"{"id":12345678901234567890}"#);
    let reader = Board::of(&app.database.pool, Access::read());
    let delivery = reader.json("delivery?endpoint=test&id=a").await;
    assert_eq!(delivery["request"]["uri"], Value::Null);
    assert_eq!(
        reader.get("api/payload?endpoint=test&id=a").await.status,
        403
    );

    let found = board
        .order("lookup", &json!({"ids": ["a", "b"]}), &JSON)
        .await;
    let found: Value = serde_json::from_slice(&found.body).unwrap();
    assert_eq!(found["found"][0]["state"], "dead");
    assert_eq!(found["unknown"], json!(["b"]));

    for (page, status) in [
        ("api/no-such-page", 404),
        ("api/delivery?endpoint=test&id=unknown", 404),
        ("api/deliveries?state=nonsense", 400),
        ("api/deliveries?from=yesterday", 400),
        ("api/act", 405),
        ("api/confirm?action=discard&endpoint=test", 400),
    ] {
        let answer = board.get(page).await;
        assert_eq!(answer.status, status, "{page}");
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(error["error"].is_string(), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_program_acts_as_an_operator_does() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let board = Board::operator(&database.pool);
    // The time that the list of deliveries gives.
    let list = board.json("deliveries?endpoint=other&state=dead").await;
    let before = &list["now"];
    let one = json!({"action": "retry", "endpoint": "test", "id": "7"});
    let some = json!({"action": "discard", "keys": [
        {"endpoint": "test", "id": "8"}, {"endpoint": "other", "id": "8"}
    ]});
    let all = json!({
        "action": "discard", "endpoint": "other", "state": "dead", "before": before
    });
    let asked = board.order("confirm", &all, &JSON).await;
    let asked: Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(
        asked,
        json!({"action": "discard", "deliveries": {"exactly": 5000}})
    );
    for (number, order) in (1..).zip([&one, &some, &all]) {
        let answer = board.order("act", order, &JSON).await;
        assert_eq!(answer.status, 200, "{order}: {}", answer.text());
        let begun: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(begun, json!({"id": number}));
        database.until(ALL_ENDED).await;
        assert_eq!(
            board.json(&format!("action?id={number}")).await["id"],
            number
        );
    }
    let did = [
        action("retry", Some("7"), 1),
        action("discard", None, 2),
        action("discard", None, 4999),
    ];
    assert_eq!(actions(&database).await, did);
    assert_eq!(board.json("action?id=1").await["state"], "under way");
    assert_eq!(board.json("action?id=3").await["changed"], 4999);
    let cancelled = board.order("cancel", &json!({"id": 3}), &JSON).await;
    assert_eq!(cancelled.status, 200);
    assert_eq!(board.json("action?id=3").await["state"], "done");

    for order in [
        json!([]),
        json!("retry"),
        json!({"action": {"a": 1}}),
        json!({"action": "retry", "keys": [[]]}),
        json!({"action": "discard", "endpoint": "test"}),
        json!({"action": "nonsense", "endpoint": "test", "id": "9"}),
        json!({"action": "retry", "endpoint": "test", "id": "9\0"}),
    ] {
        let answer = board.order("act", &order, &JSON).await;
        assert_eq!(answer.status, 400, "{order}");
    }
    assert_eq!(actions(&database).await.len(), 3);
}

/// A browser sends such a request on behalf of another site only after a preflight request, which
/// is refused.
#[tokio::test(flavor = "multi_thread")]
async fn d2_no_other_site_can_have_a_browser_act_as_a_program() {
    let app = with_a_dead_delivery().await;
    let board = Board::operator(&app.database.pool);
    let order = json!({"action": "discard", "endpoint": "test", "id": "a"});
    for headers in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/x-www-form-urlencoded")],
        &[("content-type", "text/plain; application/json")],
        &[
            ("content-type", "application/json"),
            ("content-type", "text/plain"),
        ],
    ] {
        let answer = board.order("act", &order, headers).await;
        assert_eq!(answer.status, 415, "{headers:?}");
    }
    for site in ["cross-site", "same-site"] {
        let headers = [
            ("content-type", "application/json"),
            ("sec-fetch-site", site),
        ];
        assert_eq!(board.order("act", &order, &headers).await.status, 403);
    }
    let preflight = Request::options("/api/act")
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type");
    let answer = board.send(preflight.body(Body::empty()).unwrap()).await;
    assert!(!answer.status.is_success());
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    assert_eq!(actions(&app.database).await, []);
    let reader = Board::of(&app.database.pool, Access::read());
    assert_eq!(reader.order("act", &order, &JSON).await.status, 403);
    assert_eq!(
        reader
            .order("cancel", &json!({"id": 1}), &JSON)
            .await
            .status,
        403
    );
    assert_eq!(board.order("act", &order, &JSON).await.status, 200);
    assert_eq!(
        actions(&app.database).await,
        [action("discard", Some("a"), 1)]
    );
}
