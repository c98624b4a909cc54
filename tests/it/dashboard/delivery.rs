//! Guarantee D3: the page of a delivery, and the search for deliveries that may have arrived.

use serde_json::json;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_delivery_has_the_history_of_its_failed_attempts() {
    let delays = [Duration::from_millis(1); 30];
    let app = TestApp::keeping(
        |keep| keep.retry_delays(delays),
        Failing::times(100).handler(),
    )
    .await;
    app.send(github("a", "{}")).await;
    let board = Board::operator(&app.database.pool);
    let page = "delivery?endpoint=test&id=a";
    let first = board.page(page).await;
    assert_eq!(first.text().matches(">provider</td>").count(), 1);

    let recovery = recover(&app);
    app.database
        .until("exists (select from idempotent_webhook.kept_deliveries where state = 'dead')")
        .await;
    recovery.stop().await;
    let last = board.page(page).await;
    assert_eq!(last.text().matches(">recovery</td>").count(), 20);
    last.shows("11 further attempt(s)");
    last.shows("data-state=\"dead\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_look_up_says_what_became_of_an_id() {
    let (mut gate, handler) = gated();
    let app = TestApp::github(handler).await;
    let sent = spawn_send(&app.router, github("running", "{}"));
    gate.reached().await;
    app.database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id)
             values ('test', '', 'done'), ('other', 'acme', 'done');
             insert into idempotent_webhook.kept_deliveries
                (endpoint, tenant, delivery_id, state, attempts, last_failed_at, next_attempt_at)
             values
                ('test', '', 'waiting', 'due', 1, now(), now()),
                ('test', 'acme', 'gone', 'dead', 1, now(), null),
                ('test', '', 'done', 'dead', 1, now(), null);
             insert into idempotent_webhook.kept_requests
                (endpoint, tenant, delivery_id, format, method, uri, headers, body)
             select endpoint, tenant, delivery_id, 1, 'POST', '/', '', ''
             from idempotent_webhook.kept_deliveries;
             insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, last_failed_at)
             values ('test', 'noted', 'recorded', 1, now())",
        )
        .await;
    let board = Board::operator(&app.database.pool);
    let ids = "noted%0Arunning%0A%20done%20%0Awaiting%0D%0Agone%0Aunheard-of";
    let found = board.page(&format!("lookup?ids={ids}")).await;
    let state = |state: &str| {
        found
            .text()
            .matches(&format!("data-state=\"{state}\""))
            .count()
    };
    let all = ["in flight", "processed", "due", "dead", "recorded"].map(state);
    assert_eq!(all, [1, 2, 1, 1, 1], "{}", found.text());
    found.shows("<code>unheard-of</code>");
    found.shows("No deliveries have been deleted here yet");
    board
        .page("delivery?endpoint=test&id=running")
        .await
        .shows("data-state=\"in flight\"");

    app.database
        .run("insert into idempotent_webhook.pruned (endpoint, before) values ('test', '2026-01-02 03:04:05Z')")
        .await;
    let unknown = board.page("lookup?ids=unheard-of").await;
    unknown.shows("or received before");
    unknown.shows("2026-01-02T03:04:05Z");
    gate.open();
    assert_eq!(sent.await.unwrap().status, 200);

    let many: String = (0..201).map(|number| format!("{number}%0A")).collect();
    assert_eq!(board.get(&format!("lookup?ids={many}")).await.status, 400);
}

/// The route of the delivery no longer exists. The delivery has not failed: it is tried every
/// minute.
#[tokio::test(flavor = "multi_thread")]
async fn d3_a_delivery_that_reaches_no_layer_says_so_with_its_path_and_what_to_do() {
    let app = TestApp::keeping_all(|keep| keep, write_effect).await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries set attempts = 0;
             update idempotent_webhook.kept_requests set uri = '/old/path?token=geheim';
             insert into idempotent_webhook.kept_endpoints (endpoint, served_at)
             values ('test', now())",
        )
        .await;
    let recovery = app.recovery.clone().spawn(Router::new());
    app.database
        .until(
            "(select count(*) from idempotent_webhook.kept_deliveries
              where unreached_status = 404 and taken_by is null) = 1",
        )
        .await;
    recovery.stop().await;
    let page = "delivery?endpoint=test&id=due-1";
    for (access, shows, hides) in [
        (
            Access::read().with_payloads(),
            "status 404 at <code>/old/path</code>, ",
            "no answer",
        ),
        (Access::read(), "status 404, ", "/old/path"),
    ] {
        let board = Board::of(&app.database.pool, access);
        let page = board.page(page).await;
        page.shows("its attempts reach no layer of its endpoint");
        page.shows(&format!("No layer was reached: {shows}"));
        page.shows("Serve the path again (with a clone of the layer");
        page.hides(hides);
        for page in ["overview", "endpoint?endpoint=test"] {
            let page = board.page(page).await;
            page.shows("data-state=\"behind\"");
            page.shows("1 of the due deliveries reach no layer");
        }
    }
    let board = Board::operator(&app.database.pool);
    let unreached = &board.json("overview").await["endpoints"][0]["unreached"];
    assert_eq!(unreached["number"], 1);
    assert_eq!(board.json(page).await["kept"]["unreached_status"], 404);

    // The next process has the route again.
    app.database
        .run("update idempotent_webhook.kept_requests set uri = '/'")
        .await;
    app.database.make_due().await;
    let (router, recovery) = app.elsewhere_keeping(|keep| keep, write_effect).await;
    let recovery = recovery.spawn(router);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
    board.page(page).await.hides("No layer was reached");
    board.page("overview").await.hides("reach no layer");
}

/// The operator has paused the endpoint, not the delivery.
#[tokio::test(flavor = "multi_thread")]
async fn d3_a_delivery_that_is_due_says_that_its_endpoint_is_paused() {
    let app = TestApp::keeping(|keep| keep, Failing::times(1).handler()).await;
    app.send(github("a", "{}")).await;
    let board = Board::operator(&app.database.pool);
    let page = "delivery?endpoint=test&id=a";
    for is_paused in [true, false] {
        let endpoint = endpoint(&app);
        match is_paused {
            true => endpoint.pause().await.unwrap(),
            false => endpoint.resume().await.unwrap(),
        }
        let shown = board.page(page).await;
        shown.shows("data-state=\"due\"");
        assert_eq!(shown.text().contains("Its endpoint is paused"), is_paused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_the_deliveries_of_one_id_do_not_hide_those_of_another() {
    let database = Database::new().await;
    // 200 ids at six endpoints. At two more endpoints, the first id also exists for 1,500 tenants.
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             select 'e' || endpoint, 'evt_' || 1000 + number
             from generate_series(1, 200) as number
             cross join generate_series(1, 6) as endpoint;
             insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id)
             select endpoint, 'tenant ' || 1000 + number, 'evt_1001'
             from generate_series(1, 1500) as number
             cross join unnest(array['left', 'right']) as endpoint;
             insert into idempotent_webhook.discarded (endpoint, tenant, delivery_id)
             select 'e1', 'tenant ' || 1000 + number, 'evt_1001'
             from generate_series(1, 1500) as number;
             insert into idempotent_webhook.discarded (endpoint, delivery_id)
             values ('gone', 'evt_1200')",
        )
        .await;
    let ids: String = (1001..=1200).map(|id| format!("+evt_{id}")).collect();
    let form = format!("ids={ids}");
    let board = Board::of(&database.pool, Access::read());
    let found: Value =
        serde_json::from_slice(&board.get(&format!("api/lookup?{form}")).await.body).unwrap();
    assert_eq!(found["unknown"], serde_json::json!([]));
    assert_eq!(found["cut"], serde_json::json!(["evt_1001"]));
    assert_eq!(found["found"].as_array().unwrap().len(), 100 + 199 * 6);
    assert_eq!(found["discarded"].as_array().unwrap().len(), 100 + 1);
    let page = board.post("lookup", &form).await;
    page.shows("There are more deliveries with the id <code>evt_1001</code>");

    // Deliveries of other tenants do not use up the limit for the visible ones.
    let of_last = Access::read().of_tenants(["tenant 2500"]);
    let found = Board::of(&database.pool, of_last)
        .json("lookup?ids=evt_1001")
        .await;
    let tenants: Vec<&Value> = found["found"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| &found["tenant"])
        .collect();
    assert_eq!(tenants, ["tenant 2500", "tenant 2500"]);
    assert_eq!(found["discarded"][0]["tenant"], "tenant 2500");
}

/// Pasted ids are found, regardless of what separates them.
#[tokio::test(flavor = "multi_thread")]
async fn d3_pasted_ids_are_looked_up_one_by_one() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             values ('test', 'one'), ('test', 'two'), ('test', 'with a space')",
        )
        .await;
    let board = Board::of(&database.pool, Access::read());
    let form = "ids=one+two%09three%0D%0Awith+a+space%0A%0A";
    let found = board.post("lookup", form).await;
    assert_eq!(found.status, 200);
    assert_eq!(found.text().matches("data-state=\"processed\"").count(), 3);
    found.shows("<ul class=\"ids\"><li><code>three</code></li></ul>");
    // More ids than fit into a URL, on one line.
    let many: String = (0..200).map(|number| format!("{number:0100}+")).collect();
    let answer = board.post("lookup", &format!("ids={many}")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.text().matches("<li><code>").count(), 200);
    let answer = board.post("lookup", &format!("ids={many}one")).await;
    assert_eq!(answer.status, 400);
    let foreign = [("sec-fetch-site", "cross-site")];
    assert_eq!(board.post_from("lookup", form, &foreign).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_request_is_a_command_for_those_who_may_see_it() {
    let app = with_a_dead_delivery().await;
    app.send(github("b", "{}")).await;
    app.database
        .until("exists (select from idempotent_webhook.endpoint_settings)")
        .await;
    let page = "delivery?endpoint=test&id=a";
    let shown = Board::operator(&app.database.pool).page(page).await;
    shown.shows("'https://HOST/?token=geheim'");
    shown.shows("x-hub-signature-256: SIGNATURE");
    shown.shows("--data-raw '{&quot;id&quot;:12345678901234567890}'");
    let reader = Board::of(&app.database.pool, Access::operate());
    reader.page(page).await.hides("curl");
}

/// A discarded delivery has been received.
#[tokio::test(flavor = "multi_thread")]
async fn d3_what_was_discarded_is_not_said_to_be_never_received() {
    async fn discards(_: DedupeTx, _: Bytes) -> Result<(), HandlerError> {
        Err(HandlerError::new("not for us").discard())
    }
    let app = TestApp::keeping(|keep| keep, discards).await;
    let database = &app.database;
    database.run(MANY_DEAD).await;
    let board = Board::operator(&database.pool);
    let looked_up = async |id: &str| {
        let page = format!("lookup?ids={id}");
        let found = board.json(&page).await;
        let discarded = found["discarded"].as_array().unwrap();
        let endpoints: Vec<String> = discarded
            .iter()
            .map(|one| {
                assert_eq!(one["id"], id);
                assert!(one["at"].as_str().unwrap().ends_with('Z'));
                one["endpoint"].as_str().unwrap().to_owned()
            })
            .collect();
        let is_unknown = found["unknown"] == json!([id]);
        let shown = board.page(&page).await;
        let says_so = shown.text().contains("<h2>Discarded or forgotten</h2>");
        assert_eq!(says_so, !endpoints.is_empty(), "{}", shown.text());
        let says_so = shown.text().contains("Never received");
        assert_eq!(says_so, is_unknown, "{}", shown.text());
        (endpoints, is_unknown)
    };
    let nothing = (Vec::new(), false);
    let unheard_of = (Vec::new(), true);
    assert_eq!(looked_up("7").await, nothing);
    // Discarded by an operator. The delivery of the other endpoint still exists.
    board.post("act", "action=discard&endpoint=test&id=7").await;
    assert_eq!(looked_up("7").await, (vec!["test".to_owned()], false));
    board
        .post("act", "action=discard&endpoint=other&id=7")
        .await;
    let both = (vec!["other".to_owned(), "test".to_owned()], false);
    assert_eq!(looked_up("7").await, both);
    // Discarded by an operator in a bulk action.
    let before = unix_now(database).await;
    let form = format!("action=discard&endpoint=test&state=dead&before={before}");
    board.post("act", &form).await;
    database.until(ALL_ENDED).await;
    assert_eq!(looked_up("8").await, (vec!["test".to_owned()], false));
    // Discarded by its handler.
    assert_eq!(looked_up("a").await, unheard_of);
    app.send(github("a", "{}")).await;
    assert_eq!(looked_up("a").await, (vec!["test".to_owned()], false));
    assert_eq!(looked_up("unheard-of").await, unheard_of);
    // The delivery came again.
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             values ('test', 'a')",
        )
        .await;
    assert_eq!(looked_up("a").await, nothing);
}
