//! Guarantee D3: the actions of operators.

use serde_json::json;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_dead_delivery_is_retried_and_processed() {
    let app = with_a_dead_delivery().await;
    let board = Board::operator(&app.database.pool);
    let answer = board.post("act", "action=retry&endpoint=test&id=a").await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), "delivery?endpoint=test&id=a");
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(app.database.rows().await.effects, 1);

    // The second retry has nothing left to do, and the page says so.
    board.post("act", "action=retry&endpoint=test&id=a").await;
    let did = [action("retry", Some("a"), 1), action("retry", Some("a"), 0)];
    assert_eq!(actions(&app.database).await, did);
    let page = board.page("delivery?endpoint=test&id=a").await;
    page.shows("It has been processed in the meantime.");
    page.shows("ada");
    board.page("actions").await.shows("no change");

    board.post("act", "action=forget&endpoint=test&id=a").await;
    assert_eq!(app.database.rows().await.claims, 0);
    assert_eq!(
        actions(&app.database).await[2],
        action("forget", Some("a"), 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_endpoints_are_paused_and_resumed() {
    let database = Database::new().await;
    database
        .run("insert into idempotent_webhook.redelivery_windows values ('test', interval '1 day')")
        .await;
    let board = Board::operator(&database.pool);
    let is_paused = "exists (
        select from idempotent_webhook.kept_endpoints
        where endpoint = 'test' and paused_at is not null
    )";
    let answer = board.post("act", "action=pause&endpoint=test").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("location")),
        (303, "overview")
    );
    database.until(is_paused).await;
    board.page("overview").await.shows("data-state=\"paused\"");
    board.post("act", "action=resume&endpoint=test").await;
    database.until(&format!("not {is_paused}")).await;
    // An action does not create an unknown endpoint.
    let answer = board.post("act", "action=pause&endpoint=tset").await;
    assert_eq!(answer.status, 404);
    let did = [action("pause", None, 0), action("resume", None, 0)];
    assert_eq!(actions(&database).await, did);
    database
        .until(
            "(select array_agg(endpoint) from idempotent_webhook.kept_endpoints) = array['test']",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_action_at_an_endpoint_that_does_not_exist_is_not_recorded() {
    let app = with_a_dead_delivery().await;
    let database = &app.database;
    let before = unix_now(database).await;
    let named = Access::operate().named("ada").of_endpoints(["tset"]);
    for board in [
        Board::operator(&database.pool),
        Board::of(&database.pool, named.clone()),
    ] {
        for form in [
            "action=retry&endpoint=tset&id=a".to_owned(),
            "action=discard&key=endpoint%3Dtset%26id%3Da&key=endpoint%3Dtset%26id%3Db".to_owned(),
            format!("action=retry&endpoint=tset&state=dead&before={before}"),
        ] {
            assert_eq!(board.post("act", &form).await.status, 404, "{form}");
        }
    }
    assert_eq!(actions(database).await, []);
    // If the application grants somebody an endpoint by name, they can pause it before its first delivery.
    let board = Board::of(&database.pool, named);
    let answer = board.post("act", "action=pause&endpoint=tset").await;
    assert_eq!(answer.status, 303);
    assert_eq!(actions(database).await, [action("pause", None, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_action_that_changes_nothing_again_and_again_is_recorded_once() {
    let app = with_a_dead_delivery().await;
    let board = Board::operator(&app.database.pool);
    let retry = json!({"action": "retry", "endpoint": "test", "id": "a"});
    for id in [1, 2, 2, 2, 2, 2] {
        let answer = board.order("act", &retry, &JSON).await;
        let began: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(began, json!({ "id": id }));
    }
    let (did, again) = (action("retry", Some("a"), 1), action("retry", Some("a"), 0));
    assert_eq!(actions(&app.database).await, [did, again]);
    // The same action is recorded again after another action, or if another operator requests it.
    let bob = Board::of(&app.database.pool, Access::operate().named("bob"));
    for board in [&bob, &board] {
        board.post("act", "action=retry&endpoint=test&id=a").await;
    }
    let operators: Vec<Option<String>> = actions(&app.database)
        .await
        .into_iter()
        .map(|done| done.operator)
        .collect();
    let operators: Vec<&str> = operators
        .iter()
        .map(|name| name.as_deref().unwrap())
        .collect();
    assert_eq!(operators, ["ada", "ada", "bob", "ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_endpoint_whose_breaker_is_open_can_be_paused_and_resumed() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, served_at, failed_ids, probe_at)
             values ('test', now(), array['a'], now() + interval '1 hour')",
        )
        .await;
    database
        .run("insert into idempotent_webhook.redelivery_windows values ('test', interval '1 day')")
        .await;
    let board = Board::operator(&database.pool);
    let buttons = async || {
        let page = board.page("endpoint?endpoint=test").await;
        let has = |action: &str| page.text().contains(&format!("value=\"{action}\""));
        (has("pause"), has("resume"))
    };
    assert_eq!(buttons().await, (true, true));
    board.post("act", "action=pause&endpoint=test").await;
    database
        .until(
            "exists (
                select from idempotent_webhook.kept_endpoints
                where paused_at is not null and probe_at is not null and failed_ids = array['a']
            )",
        )
        .await;
    assert_eq!(buttons().await, (false, true));
    board.post("act", "action=resume&endpoint=test").await;
    database
        .until(
            "exists (
                select from idempotent_webhook.kept_endpoints
                where paused_at is null and probe_at is null and failed_ids = '{}'
            )",
        )
        .await;
    assert_eq!(buttons().await, (true, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_bulk_action_changes_what_was_seen_and_nothing_else() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let before = unix_now(&database).await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, reason)
             values ('test', 'later', 'dead', 1, now(), now() + interval '1 s', 'it broke'),
                ('test', 'old', 'recorded', 1, now(), now() - interval '1 min', 'it broke')",
        )
        .await;
    let board = Board::operator(&database.pool);
    let form = format!("action=discard&endpoint=test&state=dead&before={before}");
    let confirm = board.page(&format!("confirm?{form}")).await;
    confirm.shows("Discard 5,000 deliveries?");
    let answer = board.post("act", &form).await;
    assert_eq!(answer.header("location"), "action?id=1");
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await, [action("discard", None, 5000)]);
    database
        .until(
            "(select array_agg(delivery_id order by delivery_id)
              from idempotent_webhook.kept_deliveries where endpoint = 'test')
                = array['later', 'old']
             and (select count(*) from idempotent_webhook.kept_deliveries) = 5002
             and (select count(*) from idempotent_webhook.kept_requests) = 5000",
        )
        .await;
    let page = board.page("action?id=1").await;
    page.shows("5,000");
    page.shows("data-state=\"done\"");

    // If a parameter is lost, the action must not apply to the whole endpoint.
    for (form, missing) in [
        (
            "action=discard&endpoint=other&state=dead",
            "`before` is missing",
        ),
        (
            "action=discard&endpoint=other&state=failing",
            "`before` is missing",
        ),
        (
            "action=discard&endpoint=other&before=9999999999",
            "`state` is missing",
        ),
        (
            "action=discard&state=dead&before=9999999999",
            "`endpoint` is missing",
        ),
        (
            "action=discard&state=failing&before=9999999999",
            "`endpoint` is missing",
        ),
        ("action=discard&endpoint=other", "`state` is missing"),
        (
            "action=forget&endpoint=other&state=dead&before=9999999999",
            "This action works only on selected deliveries",
        ),
        (
            "action=retry&endpoint=other&state=processed&before=9999999999",
            "Only the action `reprocess`",
        ),
        (
            "action=reprocess&endpoint=other&state=dead&before=9999999999",
            "the state `processed`",
        ),
        (
            "action=reprocess&state=processed&before=9999999999",
            "`endpoint` is missing",
        ),
    ] {
        for page in ["act", "confirm"] {
            let answer = board.post(page, form).await;
            assert_eq!(answer.status, 400, "{form}");
            answer.shows(missing);
        }
    }
    database
        .until("(select count(*) from idempotent_webhook.kept_deliveries) = 5002")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_all_that_is_failing_at_an_endpoint_is_retried_from_the_list_as_it_opens() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries (
                 endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, next_attempt_at
             )
             values
                 ('test', 'dead', 'dead', 1, now(), now(), null),
                 ('test', 'due', 'due', 1, now(), now(), now() + interval '1 hour'),
                 ('other', 'dead', 'dead', 1, now(), now(), null);
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select endpoint, delivery_id, 1, 'POST', '/', ''::bytea, ''::bytea
             from idempotent_webhook.kept_deliveries",
        )
        .await;
    let board = Board::operator(&database.pool);
    let list = board.page("deliveries?endpoint=test").await;
    list.shows("Retry all of these…");
    let before = unix_now(&database).await;
    let form = format!("action=retry&endpoint=test&state=failing&before={before}");
    board
        .post("confirm", &form)
        .await
        .shows("Retry 2 deliveries?");
    assert_eq!(board.post("act", &form).await.status, 303);
    database.until(ALL_ENDED).await;
    let due = "select endpoint || ' ' || delivery_id from idempotent_webhook.kept_deliveries
               where state = 'due' and next_attempt_at <= now() order by 1";
    let due: Vec<String> = sqlx::query_scalar(due)
        .fetch_all(&database.pool)
        .await
        .unwrap();
    assert_eq!(due, ["test dead", "test due"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_cancelled_bulk_action_says_truly_how_many_it_changed() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    // Makes each batch take some time.
    database
        .run(
            "create function slowly() returns trigger language plpgsql as
                $$ begin perform pg_sleep(0.3); return null; end $$;
             create trigger slowly after update on idempotent_webhook.kept_deliveries
                for each statement execute function slowly()",
        )
        .await;
    let board = Board::operator(&database.pool);
    let before = unix_now(&database).await;
    let form = format!("action=retry&endpoint=test&state=dead&before={before}");
    board.post("act", &form).await;
    database
        .until("exists (select from idempotent_webhook.operator_actions where changed > 0)")
        .await;
    let running = board.page("action?id=1").await;
    running.shows("data-state=\"running\"");
    running.shows("data-refresh");
    assert_eq!(board.post("cancel", "id=1").await.status, 303);
    database.until(ALL_ENDED).await;
    board
        .page("action?id=1")
        .await
        .shows("data-state=\"cancelled\"");
    let (changed, retried): (i64, i64) = sqlx::query_as(
        "select changed, (
            select count(*) from idempotent_webhook.kept_deliveries where state = 'due'
         )
         from idempotent_webhook.operator_actions",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(changed, retried);
    assert!((1000..5000).contains(&changed), "{changed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_selected_deliveries_are_one_action() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let board = Board::operator(&database.pool);
    let keys = "key=endpoint%3Dtest%26id%3D7&key=endpoint%3Dother%26id%3D8";
    let filter = "endpoint=test&state=dead";
    let confirm = board
        .post("confirm", &format!("action=discard&{filter}&{keys}"))
        .await;
    confirm.shows("Discard 2 deliveries?");
    confirm.shows("They are deleted");
    confirm.shows("href=\"deliveries?endpoint=test&amp;state=dead\">Do nothing");
    let confirm = board
        .page("confirm?action=discard&endpoint=test&id=7")
        .await;
    confirm.shows("It is deleted");
    let answer = board.post("act", &format!("action=discard&{keys}")).await;
    assert_eq!(answer.header("location"), "action?id=1");
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await, [action("discard", None, 2)]);
    board.page("actions").await.shows("2 selected");
    database
        .until("(select count(*) from idempotent_webhook.kept_deliveries) = 9998")
        .await;
    for nothing in ["action=discard", &format!("action=discard&{filter}")] {
        let none = board.post("confirm", nothing).await;
        assert_eq!(none.status, 400);
        none.shows("No delivery is selected");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_action_whose_process_was_killed_is_interrupted() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.operator_actions (action, endpoint, active_at, changed)
             values ('retry', 'test', now() - interval '2 min', 3000)",
        )
        .await;
    let board = Board::operator(&database.pool);
    let page = board.page("action?id=1").await;
    page.shows("data-state=\"interrupted\"");
    page.shows("3,000");
    page.hides("data-refresh");
    assert_eq!(board.get("action?id=2").await.status, 404);
}

/// The page of a retry shows its results. The page says that the retry is done only once none of its deliveries is due.
/// The same rule applies to each bulk action.
#[tokio::test(flavor = "multi_thread")]
async fn d3_what_came_or_has_failed_since_it_was_shown_is_left() {
    let database = Database::new().await;
    database.has_window("test", "1 day").await;
    let before = unix_now(&database).await;
    database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries (
                 endpoint, delivery_id, state, attempts, last_received_at, last_failed_at, next_attempt_at
             )
             select 'test', id, 'dead', 1, shown + received, shown + failed, null
             from to_timestamp({before}) as shown
             cross join (values
                 ('shown', interval '-1 hour', interval '-1 hour'),
                 ('failed since', '-1 hour', '1 ms'),
                 ('came since', '1 ms', '-1 hour'),
                 ('has not failed', '-1 hour', null)
             ) as kept (id, received, failed)"
        ))
        .await;
    let board = Board::operator(&database.pool);
    let form = format!("action=discard&endpoint=test&state=dead&before={before}");
    let confirmation = board.post("confirm", &form).await;
    confirmation.shows("Discard 1 delivery?");
    confirmation.shows("A delivery that the provider has sent again since you saw the list, at");
    assert_eq!(board.post("act", &form).await.status, 303);
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await, [action("discard", None, 1)]);
    database
        .until(
            "(select array_agg(delivery_id order by delivery_id) from idempotent_webhook.kept_deliveries)
                = array['came since', 'failed since', 'has not failed']",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_action_is_on_the_state_that_was_chosen() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(2).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries set last_failed_at = now();
             update idempotent_webhook.kept_deliveries
             set state = 'dead', next_attempt_at = null
             where delivery_id = 'due-2'",
        )
        .await;
    let board = Board::operator(&app.database.pool);
    let before = unix_now(&app.database).await;
    let form = format!("action=discard&endpoint=test&state=due&before={before}");
    assert_eq!(board.post("act", &form).await.status, 303);
    app.database.until(ALL_ENDED).await;
    assert_eq!(actions(&app.database).await, [action("discard", None, 1)]);
    app.database
        .until(
            "(select array_agg(delivery_id) from idempotent_webhook.kept_deliveries) = array['due-2']
             -- A discard runs nothing again, so its deliveries are not followed up.
             and not exists (select from idempotent_webhook.operator_action_deliveries)",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_retry_is_done_once_its_deliveries_are() {
    async fn fails(mut tx: DedupeTx, delivery: Delivery) -> Result<(), HandlerError> {
        let id = delivery.id().as_str();
        if delivery.attempt() == 1 {
            return Err(HandlerError::new("it broke"));
        }
        match id {
            "dies" => return Err(HandlerError::new("the ledger is away").dead()),
            "fails-again" => return Err(HandlerError::new("no such account")),
            _ => {}
        }
        insert_effect(&mut tx, &delivery).await?;
        Ok(())
    }
    let later = [Duration::from_secs(600); 2];
    let app = TestApp::keeping(|keep| keep.retry_delays(later), fails).await;
    for id in ["works-1", "works-2", "dies", "fails-again", "is-discarded"] {
        assert_eq!(app.send(github(id, "{}")).await.outcome, "kept");
    }
    let board = Board::operator(&app.database.pool);
    let before = unix_now(&app.database).await;
    let form = format!("action=retry&endpoint=test&state=due&before={before}");
    let answer = board.post("act", &form).await;
    assert_eq!(answer.header("location"), "action?id=1");
    app.database.until(ALL_ENDED).await;
    let page = board.page("action?id=1").await;
    page.shows("data-state=\"under way\"");
    page.shows("data-refresh");
    shows_facts(
        &page,
        &[
            ("Deliveries changed", "5"),
            ("Still due", "5"),
            ("Processed", "0"),
        ],
    );
    board.page("actions").await.shows("5 still due");

    let keys = "action=discard&endpoint=test&id=is-discarded";
    board.post("act", keys).await;
    let recovery = recover(&app);
    app.database
        .until(
            "(select count(*) from idempotent_webhook.deliveries) = 2
             and (select count(*) from idempotent_webhook.kept_deliveries) = 2
             and not exists (
                select from idempotent_webhook.kept_deliveries where taken_by is not null
             )
             and exists (select from idempotent_webhook.kept_deliveries where state = 'dead')
             and exists (
                select from idempotent_webhook.kept_deliveries where next_attempt_at > now()
             )",
        )
        .await;
    recovery.stop().await;
    assert_eq!(app.database.rows().await.effects, 2);
    let page = board.page("action?id=1").await;
    page.shows("data-state=\"under way\"");
    shows_facts(
        &page,
        &[
            ("Processed", "2"),
            ("Still due", "0"),
            ("Failed again, and due", "1"),
            ("Dead", "1"),
            ("Discarded or deleted since", "1"),
        ],
    );
    page.shows("no such account");
    page.shows("the ledger is away");

    board
        .post("act", "action=discard&endpoint=test&id=fails-again")
        .await;
    let page = board.page("action?id=1").await;
    page.shows("data-state=\"done\"");
    page.hides("data-refresh");
    shows_facts(&page, &[("Discarded or deleted since", "2")]);
}

/// Asserts that a page shows these names with these values.
#[track_caller]
fn shows_facts(page: &Answer, facts: &[(&str, &str)]) {
    for (name, value) in facts {
        let (_, rest) = page
            .text()
            .split_once(&format!("<dt>{name}</dt><dd>"))
            .unwrap();
        let shown = rest.split("</dd>").next().unwrap();
        let shown = shown
            .replace("<span class=\"changed\">", "")
            .replace("</span>", "");
        assert_eq!(shown, *value, "{name}");
    }
}

/// D12: deliveries that failed for one reason on several endpoints are retried in one action.
#[tokio::test(flavor = "multi_thread")]
async fn d3_a_reason_is_retried_and_discarded_over_all_endpoints() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set reason_group = idempotent_webhook.reason_group(
                case when delivery_id::int <= 30 then 'it broke' else 'another reason' end
             )",
        )
        .await;
    let board = Board::operator(&database.pool);
    let group = group_of(&database, "it broke").await;
    let before = unix_now(&database).await;
    let form =
        |action: &str| format!("action={action}&state=failing&reason={group}&before={before}");
    let confirm = board.page(&format!("confirm?{}", form("retry"))).await;
    confirm.shows("Retry 60 deliveries?");
    confirm.shows("all 2 endpoints");
    board.post("act", &form("retry")).await;
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await, [action("retry", None, 60)]);
    let due = "(select array_agg(distinct endpoint) from idempotent_webhook.kept_deliveries
        where state = 'due' and delivery_id::int <= 30) = array['other', 'test']
        and (select count(*) from idempotent_webhook.kept_deliveries where state = 'due') = 60";
    database.until(due).await;
    board.page("action?id=1").await.shows("several endpoints");
    board.post("act", &form("discard")).await;
    database.until(ALL_ENDED).await;
    database
        .until("(select count(*) from idempotent_webhook.kept_deliveries) = 9940")
        .await;
    assert_eq!(actions(&database).await[1], action("discard", None, 60));
    // If the reason is lost, the action must not apply to all deliveries of all endpoints.
    for lost in [
        format!("action=discard&state=failing&before={before}"),
        format!("action=discard&state=dead&before={before}"),
        format!("action=discard&reason={group}&before={before}"),
        format!("action=discard&state=failing&reason={group}"),
    ] {
        assert_eq!(board.post("act", &lost).await.status, 400, "{lost}");
    }
}

/// D1, D8: the action does not wait for running deliveries, and the number that it reports is correct.
#[tokio::test(flavor = "multi_thread")]
async fn d3_a_bulk_discard_leaves_out_what_is_running_and_says_so() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let board = Board::operator(&database.pool);
    let running = [
        lock_claim(&database, "7").await,
        lock_claim(&database, "2000").await,
    ];
    let before = unix_now(&database).await;
    let form = format!("action=discard&endpoint=test&state=dead&before={before}");
    board.post("act", &form).await;
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await, [action("discard", None, 4998)]);
    let page = board.page("action?id=1").await;
    shows_facts(&page, &[("Not changed, because they were running", "2")]);
    assert_eq!(board.json("action?id=1").await["running"], 2);
    database
        .until(
            "(select count(*) from idempotent_webhook.kept_deliveries where endpoint = 'test') = 2",
        )
        .await;
    for running in running {
        running.rollback().await.unwrap();
    }

    // A discard of a single delivery does not wait for a running attempt either.
    let running = lock_claim(&database, "7").await;
    let answer = board.post("act", "action=discard&endpoint=test&id=7").await;
    assert_eq!(answer.status, 303);
    assert_eq!(actions(&database).await[1], action("discard", Some("7"), 0));
    board
        .page("delivery?endpoint=test&id=7")
        .await
        .shows("It is running. Try again");
    running.rollback().await.unwrap();
    board.post("act", "action=discard&endpoint=test&id=7").await;
    assert_eq!(actions(&database).await[2], action("discard", Some("7"), 1));
}

/// Locks the claim of a delivery of `test`, as an attempt at it does.
async fn lock_claim(database: &Database, id: &str) -> Transaction<'static, Postgres> {
    let mut tx = database.pool.begin().await.unwrap();
    sqlx::query(
        "select pg_advisory_xact_lock(
            hashtextextended($1, hashtextextended('', hashtextextended('test', 0)))
         )",
    )
    .bind(id)
    .execute(&mut *tx)
    .await
    .unwrap();
    tx
}

/// A trigger notes every change of a kept delivery, and the notes are compared with what the actions report.
#[tokio::test(flavor = "multi_thread")]
async fn d3_what_bulk_actions_count_is_what_has_changed() {
    let app = TestApp::keeping(|keep| keep.retry_delays([]), write_effect).await;
    let database = &app.database;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, first_received_at, first_failed_at,
                 last_failed_at, reason, reason_group)
             select 'test', 'id-' || number, 'dead', 1, now() - interval '1 hour', now(),
                now() - interval '1 min' - number * interval '1 ms', 'it broke',
                idempotent_webhook.reason_group('it broke')
             from generate_series(1, 4000) as number;
             insert into idempotent_webhook.kept_requests
                (endpoint, delivery_id, format, method, uri, headers, body)
             select endpoint, delivery_id, 1, 'POST', '/', '', '{}'
             from idempotent_webhook.kept_deliveries;
             create table changes (what text, delivery_id text);
             create function note() returns trigger language plpgsql as $$
             begin
                insert into changes
                select case
                    when tg_op = 'DELETE' and not exists (
                        select from idempotent_webhook.deliveries
                        where delivery_id = old.delivery_id
                    ) then 'discarded'
                    when tg_op = 'DELETE' then 'processed'
                    when old.state = 'dead' and new.state = 'due' then 'retried'
                end, old.delivery_id;
                return null;
             end $$;
             create trigger note after update or delete on idempotent_webhook.kept_deliveries
                for each row execute function note()",
        )
        .await;
    let boards = [
        Board::operator(&database.another_pool(3).await),
        Board::operator(&database.another_pool(3).await),
    ];
    let recovery = recover(&app);
    let before = unix_now(database).await;
    let all = |action: &str| format!("action={action}&endpoint=test&state=dead&before={before}");
    // A retried delivery is due, so the discard of failing deliveries must also find deliveries in that state.
    let failing = format!(
        "action=discard&endpoint=test&state=failing&before={before}&reason={}",
        group_of(database, "it broke").await
    );
    let (retry, discard) = (all("retry"), all("discard"));
    let begun = futures_util::future::join_all([
        boards[0].post("act", &retry),
        boards[1].post("act", &discard),
        boards[0].post("act", &failing),
    ])
    .await;
    assert!(begun.iter().all(|answer| answer.status == 303));
    database.until(ALL_ENDED).await;
    let nothing_dead = "not exists (
        select from idempotent_webhook.kept_deliveries where state = 'dead'
    )";
    database.until(nothing_dead).await;
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let (retried, discarded, processed, told_retried, told_discarded): (i64, i64, i64, i64, i64) =
        sqlx::query_as(
            "select
                count(*) filter (where what = 'retried'),
                count(*) filter (where what = 'discarded'),
                (select count(*) from idempotent_webhook.deliveries),
                (select sum(changed)::int8 from idempotent_webhook.operator_actions
                 where action = 'retry'),
                (select sum(changed)::int8 from idempotent_webhook.operator_actions
                 where action = 'discard')
             from changes",
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!((told_retried, told_discarded), (retried, discarded));
    // Each delivery was either processed or discarded.
    assert_eq!(processed + discarded, 4_000);
    assert_eq!(database.rows().await.effects, processed);
    let members: i64 = sqlx::query_scalar(
        "select count(*) from idempotent_webhook.operator_action_deliveries where action = (
            select id from idempotent_webhook.operator_actions where action = 'retry'
         )",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(members, retried);
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_processed_deliveries_are_processed_again_from_their_request() {
    let day = Duration::from_secs(24 * 60 * 60);
    let app = TestApp::keeping_all(|keep| keep.processed_for(day), write_effect).await;
    for id in ["a", "b", "c"] {
        assert_eq!(app.send(github(id, "{}")).await.status, 200);
    }
    let board = Board::operator(&app.database.pool);
    let list = board.page("deliveries?endpoint=test&state=processed").await;
    assert_eq!(list.text().matches(">kept</td>").count(), 3);
    list.shows("Process all of these again…");
    let confirm = board
        .page("confirm?action=reprocess&endpoint=test&id=a")
        .await;
    confirm.shows("with the kept request");
    let answer = board
        .post("act", "action=reprocess&endpoint=test&id=a")
        .await;
    assert_eq!(answer.header("location"), "delivery?endpoint=test&id=a");
    let before = unix_now(&app.database).await;
    let form = format!("action=reprocess&endpoint=test&state=processed&before={before}");
    board
        .page(&format!("confirm?{form}"))
        .await
        .shows("Process 2 deliveries again?");
    board.post("act", &form).await;
    app.database.until(ALL_ENDED).await;
    let did = [
        action("reprocess", Some("a"), 1),
        action("reprocess", None, 2),
    ];
    assert_eq!(actions(&app.database).await, did);
    let recovery = recover(&app);
    app.database
        .until("(select count(*) from idempotent_webhook.deliveries) = 3")
        .await;
    app.database
        .until("not exists (select from idempotent_webhook.kept_deliveries where state <> 'processed')")
        .await;
    recovery.stop().await;
    assert_eq!(app.database.rows().await.effects, 6);
    let page = board.page("action?id=2").await;
    page.shows("data-state=\"done\"");
    shows_facts(&page, &[("Processed", "2")]);
}

#[tokio::test]
async fn d3_an_unknown_action_is_not_cancelled() {
    let database = Database::new().await;
    let board = Board::operator(&database.pool);
    let log = logged(async {
        assert_eq!(board.post("cancel", "id=17").await.status, 404);
    })
    .await;
    assert!(!log.contains("cancelled"), "{log}");
}

/// A trigger gives each retried delivery back at once, as if its layer could not be reached. Each delivery is retried
/// and counted once.
#[tokio::test(flavor = "multi_thread")]
async fn d3_a_bulk_retry_ends_and_counts_each_delivery_once() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    database
        .run(
            "create function give_back() returns trigger language plpgsql as
                $$ begin new.next_attempt_at = now() + interval '1 minute'; return new; end $$;
             create trigger give_back before update on idempotent_webhook.kept_deliveries
                for each row when (new.state = 'due') execute function give_back();
             update idempotent_webhook.kept_deliveries
             set reason_group = idempotent_webhook.reason_group('it broke'), state = 'due',
                next_attempt_at = now()
             where delivery_id::int <= 1500",
        )
        .await;
    let board = Board::operator(&database.pool);
    let group = group_of(&database, "it broke").await;
    let before = unix_now(&database).await;
    let form = format!("action=retry&state=failing&reason={group}&before={before}");
    board.post("act", &form).await;
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await, [action("retry", None, 3000)]);
}

/// The page checks a limited number of deliveries. If the retry has more, the page cannot know that none of them is
/// due.
#[tokio::test(flavor = "multi_thread")]
async fn d3_an_action_on_very_many_is_not_done_because_some_of_them_are() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.operator_actions
                (action, endpoint, endpoints, ended_at, changed)
             values ('retry', 'test', array['test'], now(), 10001);
             insert into idempotent_webhook.operator_action_deliveries
             select 1, 'test', '', to_char(number, '00000') from generate_series(1, 10001) as number;
             insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, next_attempt_at)
             values ('test', to_char(10001, '00000'), 'due', 1, now())",
        )
        .await;
    let board = Board::operator(&database.pool);
    let page = board.page("action?id=1").await;
    page.hides("data-state=\"done\"");
    page.shows("Only 10,000 of them are counted here.");
    database
        .run("delete from idempotent_webhook.operator_action_deliveries where delivery_id = ' 00001'")
        .await;
    board
        .page("action?id=1")
        .await
        .shows("data-state=\"under way\"");
    database
        .run("delete from idempotent_webhook.operator_action_deliveries")
        .await;
    let page = board.page("action?id=1").await;
    page.hides("data-state=\"done\"");
    page.shows("The deliveries are no longer on record");
}

/// The dashboard offers to reprocess an archived delivery, and not to forget it: forgetting would delete the request,
/// and only the provider could send it again.
#[tokio::test(flavor = "multi_thread")]
async fn d3_what_is_archived_is_not_forgotten() {
    let day = Duration::from_secs(24 * 60 * 60);
    let app = TestApp::keeping_all(|keep| keep.processed_for(day), write_effect).await;
    for id in ["a", "b"] {
        assert_eq!(app.send(github(id, "{}")).await.status, 200);
    }
    app.database
        .run("delete from idempotent_webhook.kept_deliveries where delivery_id = 'b'")
        .await;
    let board = Board::operator(&app.database.pool);
    let found = board.page("lookup?ids=a").await;
    found.shows("value=\"reprocess\"");
    found.hides("value=\"forget\"");
    let found = board.page("lookup?ids=b").await;
    found.shows("value=\"forget\"");
    found.hides("value=\"reprocess\"");
    let keys = "key=endpoint%3Dtest%26id%3Da&key=endpoint%3Dtest%26id%3Db";
    board.post("act", &format!("action=forget&{keys}")).await;
    app.database.until(ALL_ENDED).await;
    assert_eq!(actions(&app.database).await, [action("forget", None, 1)]);
    board
        .page("action?id=1")
        .await
        .shows("1 of them could not be changed");
    board.post("act", "action=forget&endpoint=test&id=a").await;
    board
        .page("delivery?endpoint=test&id=a")
        .await
        .shows("Its request is kept");
    app.database
        .until(
            "(select array_agg(delivery_id) from idempotent_webhook.deliveries) = array['a']
             and (select array_agg(delivery_id) from idempotent_webhook.kept_requests) = array['a']",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_of_those_that_were_selected_what_is_running_is_left_and_counted() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let running = [
        lock_claim(&database, "7").await,
        lock_claim(&database, "8").await,
    ];
    let board = Board::operator(&database.pool);
    let keys = ["7", "8", "9"].map(|id| format!("key=endpoint%3Dtest%26id%3D{id}"));
    let form = format!("action=discard&{}", keys.join("&"));
    for (id, changed) in [(1, 1), (2, 0)] {
        board.post("act", &form).await;
        database.until(ALL_ENDED).await;
        let page = board.page(&format!("action?id={id}")).await;
        shows_facts(&page, &[("Not changed, because they were running", "2")]);
        let done = action("discard", None, changed);
        assert_eq!(actions(&database).await[id - 1], done);
    }
    // The third delivery no longer exists.
    board
        .page("action?id=2")
        .await
        .shows("1 of them could not be changed");
    board.page("actions").await.shows("no change");
    for running in running {
        running.rollback().await.unwrap();
    }
    board.post("act", &form).await;
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await[2], action("discard", None, 2));
}

/// Another session has locked the delivery for longer than an action waits.
#[tokio::test(flavor = "multi_thread")]
async fn d3_an_action_says_that_something_holds_a_delivery() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let mut held = database.pool.begin().await.unwrap();
    sqlx::query(
        "select from idempotent_webhook.kept_deliveries
         where endpoint = 'test' and delivery_id = '7'
         for update",
    )
    .execute(&mut *held)
    .await
    .unwrap();
    let board = Board::operator(&database.pool);
    let before = unix_now(&database).await;
    for form in [
        format!("action=discard&endpoint=test&state=dead&before={before}"),
        "action=discard&endpoint=test&id=7".to_owned(),
    ] {
        assert_eq!(board.post("act", &form).await.status, 303, "{form}");
        database.until(ALL_ENDED).await;
    }
    held.rollback().await.unwrap();
    let noted = "2 = (
        select count(*) from idempotent_webhook.operator_actions
        where note like 'Something else has locked a delivery%' and ended_at is not null
    )
    and exists (select from idempotent_webhook.kept_deliveries where delivery_id = '7')";
    database.until(noted).await;
}

/// There are so many endpoints that the page cannot list all of them.
#[tokio::test(flavor = "multi_thread")]
async fn d3_an_action_on_all_of_too_many_endpoints_is_refused() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    database
        .run(
            "insert into idempotent_webhook.redelivery_windows
             select 'e' || number, interval '1 day' from generate_series(1, 500) as number",
        )
        .await;
    let board = Board::operator(&database.pool);
    let (group, before) = (
        group_of(&database, "it broke #").await,
        unix_now(&database).await,
    );
    let form = format!("action=discard&state=dead&reason={group}&before={before}");
    let answer = board.post("act", &form).await;
    assert_eq!(answer.status, 400);
    answer.shows("Choose one.");
    assert_eq!(actions(&database).await, []);
}

/// Erasing needs a right of its own: the right to retry and discard is not enough.
#[tokio::test(flavor = "multi_thread")]
async fn q2_content_is_erased_by_those_who_may() {
    let app = with_a_dead_delivery().await;
    let pool = &app.database.pool;
    let operator = Board::operator(pool);
    let form = "action=erase&endpoint=test&id=a";
    assert_eq!(operator.post("act", form).await.status, 403);
    assert_eq!(operator.get(&format!("confirm?{form}")).await.status, 403);
    let reader = Board::of(pool, Access::read().with_erasure());
    assert_eq!(reader.post("act", form).await.status, 403);
    let page = operator.page("delivery?endpoint=test&id=a").await;
    assert!(!page.text().contains("Erase"));

    let access = Access::operate()
        .with_payloads()
        .with_erasure()
        .named("ada");
    let board = Board::of(pool, access);
    board
        .page("delivery?endpoint=test&id=a")
        .await
        .shows("Erase…");
    let list = board.page("deliveries?endpoint=test&state=dead").await;
    list.shows("Erase the selected…");
    list.shows("Erase all of these…");
    let confirmation = board.page(&format!("confirm?{form}")).await;
    confirmation.shows("Erase the content of 1 delivery?");
    confirmation.shows("It cannot run again.");
    assert_eq!(board.post("act", form).await.status, 303);
    assert_eq!(
        actions(&app.database).await,
        [action("erase", Some("a"), 1)]
    );
    assert!(!app.database.dump(&[]).await.has("12345678901234567890"));
    let page = board.page("delivery?endpoint=test&id=a").await;
    page.shows("its content was erased");
    board.post("act", form).await;
    board
        .page("delivery?endpoint=test&id=a")
        .await
        .shows("There is no content to erase.");

    // All deliveries of a selection are erased in the background.
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set state = 'dead', reason = 'geheim', erased = false",
        )
        .await;
    let before = unix_now(&app.database).await;
    let all = format!("action=erase&endpoint=test&state=dead&before={before}");
    // The page reports what the action has left out.
    let held = lock_claim(&app.database, "a").await;
    assert_eq!(board.post("act", &all).await.status, 303);
    app.database
        .until(
            "exists (
                select from idempotent_webhook.operator_actions
                where running = 1 and ended_at is not null and changed = 0
            )",
        )
        .await;
    held.rollback().await.unwrap();
    assert_eq!(board.post("act", &all).await.status, 303);
    app.database
        .until("exists (select from idempotent_webhook.kept_deliveries where state = 'recorded')")
        .await;
    assert!(!app.database.dump(&[]).await.has("geheim"));
}
