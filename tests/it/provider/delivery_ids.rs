//! With each preset, two different deliveries both run, even if they look alike. The provider's retry of a delivery is
//! a duplicate, if anything in the request shows that it is a retry.

use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderName, Request};
use idempotent_webhook::provider::signature::BasicCredentials;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret, Source, TenantSecrets, presets, testing};
use serde_json::{Value, json};

use crate::support::{TestApp, answer, assert_rows, secret, write_effect};

/// Sends deliveries one after the other. `runs` says for each of them whether its handler should run.
async fn assert_runs<const N: usize>(provider: Provider, sent: [(&TestDelivery, bool); N]) {
    let app = TestApp::of(provider, write_effect).await;
    let mut effects = 0;
    for (i, (delivery, runs)) in sent.into_iter().enumerate() {
        let expected = match runs {
            true => answer(200, "processed", "done"),
            false => answer(200, "duplicate", ""),
        };
        assert_eq!(app.send(delivery.request()).await, expected, "{i}");
        effects += i64::from(runs);
        assert_rows!(app.database, claims: effects, effects: effects, "{i}");
    }
}

const RUNS: bool = true;
const DUPLICATE: bool = false;

fn of(provider: &Provider, body: &Value) -> TestDelivery {
    TestDelivery::new(provider).body(body.to_string())
}

fn ago(seconds: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(seconds)
}

#[tokio::test]
async fn webflows_inventory_that_comes_back_to_a_number_runs_again() {
    let webflow = presets::webflow(secret());
    let left = |quantity: u32, at| {
        let payload = json!({"id": "i1", "quantity": quantity, "inventoryType": "finite"});
        let body = json!({"triggerType": "ecomm_inventory_changed", "payload": payload});
        of(&webflow, &body).at(at)
    };
    let first = left(4, ago(120));
    let sent = [
        (&first, RUNS),
        (&left(5, ago(60)), RUNS),
        (&left(4, ago(0)), RUNS),
        (&first, DUPLICATE),
    ];
    assert_runs(webflow.clone(), sent).await;
}

#[tokio::test]
async fn woocommerces_product_that_is_deleted_again_runs_again() {
    let woocommerce = presets::woocommerce(secret());
    let deleted = |id: u32, delivery: &str| {
        of(&woocommerce, &json!({"id": id}))
            .event_type("product.deleted")
            .header(
                HeaderName::from_static("x-wc-webhook-delivery-id"),
                delivery,
            )
    };
    let first = deleted(7, "d1");
    let sent = [
        (&first, RUNS),
        // These two deletions have the same time, to the second.
        (&deleted(8, "d1"), RUNS),
        (&deleted(7, "d2"), RUNS),
        (&first, DUPLICATE),
    ];
    assert_runs(woocommerce.clone(), sent).await;
}

#[tokio::test]
async fn adyens_reports_of_one_name_are_those_of_their_account_and_time() {
    let adyen = presets::adyen(Secret::new("00112233").unwrap());
    let item = |code: &str, account: &str, date: &str, reason: &str| {
        let item = json!({
            "eventCode": code, "pspReference": "settlement_1.csv", "success": "true",
            "merchantAccountCode": account, "eventDate": date, "reason": reason,
            "amount": {"value": 0, "currency": "EUR"},
        });
        let items = json!({"notificationItems": [{"NotificationRequestItem": item}]});
        of(&adyen, &items)
    };
    let report = item(
        "REPORT_AVAILABLE",
        "Shop",
        "2025-06-15T15:06:40+02:00",
        "url 1",
    );
    let payment = item("AUTHORISATION", "Shop", "2025-06-15T15:06:40+02:00", "");
    let sent = [
        (&report, RUNS),
        (
            &item("REPORT_AVAILABLE", "Other", "2025-06-15T15:06:40+02:00", ""),
            RUNS,
        ),
        // A report with the same file name, generated again.
        (
            &item("REPORT_AVAILABLE", "Shop", "2025-06-16T15:06:40+02:00", ""),
            RUNS,
        ),
        (
            &item(
                "REPORT_AVAILABLE",
                "Shop",
                "2025-06-15T15:06:40+02:00",
                "url 2",
            ),
            DUPLICATE,
        ),
        (&payment, RUNS),
        // The time of a payment is not signed, so it is no part of the id.
        (
            &item("AUTHORISATION", "Shop", "2025-06-16T15:06:40+02:00", ""),
            DUPLICATE,
        ),
        (
            &item("AUTHORISATION", "Other", "2025-06-15T15:06:40+02:00", ""),
            RUNS,
        ),
    ];
    assert_runs(adyen.clone(), sent).await;
}

#[tokio::test]
async fn docusigns_recipients_and_events_without_an_envelope_are_told_apart() {
    let docusign = presets::docusign(secret());
    let event = |event: &str, retries: u32, data: Value| {
        let time = "2025-06-15T15:06:40.0000000Z";
        let body = json!({
            "event": event, "generatedDateTime": time, "retryCount": retries, "data": data,
        });
        of(&docusign, &body)
    };
    let signed = |retries, recipient: &str| {
        let data = json!({"envelopeId": "e1", "recipientId": recipient});
        event("recipient-completed", retries, data)
    };
    let template = |id: &str| event("template-created", 0, json!({"templateId": id}));
    let sent = [
        (&signed(0, "1"), RUNS),
        (&signed(0, "2"), RUNS),
        (&signed(1, "1"), DUPLICATE),
        (
            &event("envelope-completed", 0, json!({"envelopeId": "e1"})),
            RUNS,
        ),
        (
            &event("envelope-completed", 1, json!({"envelopeId": "e1"})),
            DUPLICATE,
        ),
        (&template("t1"), RUNS),
        (&template("t2"), RUNS),
        (&template("t1"), DUPLICATE),
    ];
    assert_runs(docusign.clone(), sent).await;
}

#[tokio::test]
async fn telegrams_bots_have_ids_of_their_own_where_they_are_tenants() {
    let bot = |head: &Parts| head.uri.query().map(str::to_owned);
    let lookup = async |_| Ok(Some(secret()));
    let telegram = presets::telegram(TenantSecrets::new(bot, lookup).separate_ids());
    let update = |bot: &str| {
        of(&telegram, &json!({"update_id": 1, "message": {}}))
            .secret(secret())
            .uri(&format!("/?{bot}"))
    };
    let sent = [
        (&update("a"), RUNS),
        (&update("b"), RUNS),
        (&update("a"), DUPLICATE),
    ];
    assert_runs(telegram.clone(), sent).await;
}

#[tokio::test]
async fn trellos_action_runs_for_each_model_that_is_part_of_the_key() {
    let key = ["$.action.id", "$.model.id"].map(|path| Source::json(path.parse().unwrap()));
    let [action, model] = key;
    let trello = presets::trello(secret())
        .public_url("https://example.com".parse().unwrap())
        .delivery_id(action.and(model));
    let action = json!({"id": "a1", "type": "updateCard"});
    let of_model = |id: &str| of(&trello, &json!({"action": action, "model": {"id": id}}));
    let sent = [
        (&of_model("board"), RUNS),
        (&of_model("card"), RUNS),
        (&of_model("board"), DUPLICATE),
    ];
    assert_runs(trello.clone(), sent).await;
}

#[tokio::test]
async fn patreons_member_who_changes_back_runs_again() {
    let patreon = presets::patreon(secret());
    let member = |status: &str| {
        let attributes = json!({"patron_status": status});
        of(&patreon, &json!({"data": {"attributes": attributes}})).event_type("members:update")
    };
    let (active, declined) = (member("active_patron"), member("declined_patron"));
    let sent = [(&active, RUNS), (&declined, RUNS), (&active, RUNS)];
    assert_runs(patreon.clone(), sent).await;
}

#[tokio::test]
async fn paystacks_second_failure_of_an_identification_runs_again() {
    let paystack = presets::paystack(secret());
    let identification = json!({"customer_code": "c1", "reason": "does not match"});
    let failed = of(
        &paystack,
        &json!({"event": "customeridentification.failed", "data": identification}),
    );
    let charge = of(
        &paystack,
        &json!({"event": "charge.success", "data": {"id": 302_961, "amount": 100}}),
    );
    let sent = [
        (&failed, RUNS),
        (&failed, RUNS),
        (&charge, RUNS),
        (&charge, DUPLICATE),
    ];
    assert_runs(paystack.clone(), sent).await;
}

#[tokio::test]
async fn sentrys_issue_that_is_resolved_again_runs_again_and_so_does_a_retry() {
    let sentry = presets::sentry(secret());
    let resolved = |request: &str| {
        of(
            &sentry,
            &json!({"action": "resolved", "data": {"issue": {"id": "1"}}}),
        )
        .event_type("issue")
        .id(request)
    };
    let sent = [
        (&resolved("r1"), RUNS),
        (&resolved("r2"), RUNS),
        (&resolved("r1"), DUPLICATE),
    ];
    assert_runs(sentry.clone(), sent).await;
}

#[tokio::test]
async fn postmarks_events_with_one_body_have_traces_of_their_own() {
    let postmark = presets::postmark("user:password".parse::<BasicCredentials>().unwrap());
    let body =
        json!({"RecordType": "Open", "MessageID": "m1", "ReceivedAt": "2025-06-15T15:06:40Z"});
    let trace = |id: &str| {
        let left = HeaderName::from_static("x-pm-retries-remaining");
        of(&postmark, &body).id(id).header(left, "9")
    };
    let retry = HeaderName::from_static("x-pm-retries-remaining");
    let sent = [
        (&trace("t1"), RUNS),
        (&trace("t2"), RUNS),
        (&trace("t1").header(retry, "8"), DUPLICATE),
    ];
    assert_runs(postmark.clone(), sent).await;
}

#[tokio::test]
async fn lines_batches_that_share_an_event_both_run() {
    let line = presets::line(secret());
    let batch = |ids: &[&str], again: bool| {
        let events = ids
            .iter()
            .map(|id| json!({"webhookEventId": id, "deliveryContext": {"isRedelivery": again}}));
        let events: Vec<_> = events.collect();
        of(&line, &json!({"destination": "u1", "events": events}))
    };
    let sent = [
        (&batch(&["a", "b"], false), RUNS),
        (&batch(&["a", "c"], false), RUNS),
        (&batch(&["a"], false), RUNS),
        (&batch(&["a", "b"], true), DUPLICATE),
        (&batch(&["a"], true), DUPLICATE),
    ];
    assert_runs(line.clone(), sent).await;
}

#[tokio::test]
async fn plivos_caller_who_gives_the_same_answer_twice_is_heard_twice() {
    let plivo = presets::plivo(secret()).public_url("https://example.com".parse().unwrap());
    let form = |body: &'static str| {
        let form = "application/x-www-form-urlencoded";
        TestDelivery::new(&plivo)
            .header(CONTENT_TYPE, form)
            .body(body)
    };
    let digits = form("CallUUID=c1&Digits=1");
    let sent = [
        (&digits, RUNS),
        (&digits, RUNS),
        (&form("MessageUUID=m1&Status=sent"), RUNS),
        (&form("MessageUUID=m1&Status=delivered"), RUNS),
        (&form("MessageUUID=m1&Status=sent"), DUPLICATE),
    ];
    assert_runs(plivo.clone(), sent).await;
}

#[tokio::test]
async fn buildkites_build_that_runs_again_with_the_same_body_runs_again() {
    let buildkite = presets::buildkite(secret());
    let running = |at| {
        let body = json!({"event": "build.running", "build": {"id": "b1", "state": "running"}});
        of(&buildkite, &body).at(at)
    };
    let first = running(ago(60));
    let sent = [
        (&first, RUNS),
        (&running(ago(0)), RUNS),
        (&first, DUPLICATE),
    ];
    assert_runs(buildkite.clone(), sent).await;
}

#[tokio::test]
async fn hubspots_object_that_enters_a_workflow_again_runs_again() {
    let hubspot = presets::hubspot(secret()).public_url("https://example.com".parse().unwrap());
    let entered = |at| of(&hubspot, &json!({"objectId": 1})).at(at);
    let batch = |attempt: u32| {
        let event = json!({"eventId": 1, "objectId": 1, "attemptNumber": attempt});
        of(&hubspot, &json!([event]))
    };
    let first = entered(ago(60));
    let sent = [
        (&first, RUNS),
        (&entered(ago(0)), RUNS),
        (&first, DUPLICATE),
        (&batch(0), RUNS),
        (&batch(1), DUPLICATE),
    ];
    assert_runs(hubspot.clone(), sent).await;
}

#[tokio::test]
async fn slacks_rate_limits_which_have_no_event_are_told_apart_by_their_minute() {
    let slack = presets::slack(secret());
    let limited = |minute: u64| {
        let body = json!({
            "type": "app_rate_limited", "api_app_id": "A1", "team_id": "T1",
            "minute_rate_limited": minute,
        });
        // The test kit would fill in an event id.
        let request = Request::post("/").body(body.to_string().into()).unwrap();
        let signed = testing::sign(&slack, &secret(), request, ago(0)).unwrap();
        signed.map(Body::from)
    };
    let app = TestApp::of(slack.clone(), write_effect).await;
    for (minute, outcome) in [(1, "processed"), (2, "processed"), (1, "duplicate")] {
        let answered = app.send(limited(minute)).await;
        assert_eq!((answered.status, &*answered.outcome), (200, outcome));
    }
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn notifications_that_are_the_same_to_the_byte_all_run() {
    let drive = json!({"value": [{"subscriptionId": "s1", "resource": "me/drive/root"}]});
    let deploy = json!({"id": "d1", "locked": true});
    let conversation = json!({"id": 10, "tags": ["a"]});
    for (preset, body) in [
        ("microsoft-graph", &drive),
        ("netlify", &deploy),
        #[cfg(feature = "sha1")]
        ("help-scout", &conversation),
        ("websub", &conversation),
    ] {
        let provider = presets::by_name(preset).unwrap().provider(secret());
        let same = of(&provider, body).event_type("deploy_locked");
        assert_runs(provider.clone(), [(&same, RUNS), (&same, RUNS)]).await;
    }
}

#[tokio::test]
async fn clickups_comment_that_is_edited_runs_again() {
    let clickup = presets::clickup(secret());
    let comment = |text: &str| {
        let body = json!({
            "event": "taskCommentUpdated", "webhook_id": "w1",
            "history_items": [{"id": "h1", "comment": {"text_content": text}}],
        });
        of(&clickup, &body)
    };
    let sent = [
        (&comment("hello"), RUNS),
        (&comment("hello!"), RUNS),
        (&comment("hello"), DUPLICATE),
    ];
    assert_runs(clickup.clone(), sent).await;
}

#[tokio::test]
async fn documensos_retry_is_a_duplicate_where_it_has_an_id() {
    let documenso = presets::documenso(secret());
    let attempt = |id: Option<&str>, time: &str| {
        let mut body = json!({"event": "DOCUMENT_SIGNED", "payload": {"id": 1}, "createdAt": time});
        if let Some(id) = id {
            body["deliveryId"] = id.into();
        }
        // The exact bytes matter: the test kit would fill in the id.
        let request = Request::post("/").body(body.to_string().into()).unwrap();
        let signed = testing::sign(&documenso, &secret(), request, ago(0)).unwrap();
        signed.map(Body::from)
    };
    let app = TestApp::of(documenso.clone(), write_effect).await;
    for (id, time, outcome) in [
        (Some("d1"), "t1", "processed"),
        (Some("d1"), "t2", "duplicate"),
        (Some("d2"), "t2", "processed"),
        (None, "t1", "processed"),
        (None, "t1", "duplicate"),
        // The next attempt of a release that sends no id.
        (None, "t2", "processed"),
    ] {
        let answered = app.send(attempt(id, time)).await;
        assert_eq!((answered.status, &*answered.outcome), (200, outcome));
    }
    assert_rows!(app.database, claims: 4, effects: 4);
}

#[tokio::test]
async fn notifications_of_terraform_with_one_body_are_one_where_they_have_an_id() {
    let terraform = presets::terraform_cloud(secret());
    let notification = |body: &Value| {
        // The exact bytes matter: the test kit would fill in an id.
        let request = Request::post("/").body(body.to_string().into()).unwrap();
        let signed = testing::sign(&terraform, &secret(), request, ago(0)).unwrap();
        signed.map(Body::from)
    };
    let run = json!({"run_id": "run-1", "notifications": [{"trigger": "run:completed"}]});
    let drift = json!({"trigger": "assessment:drifted",
        "details": {"new_assessment_result": {"id": "asmtres-1"}}});
    let reminder = json!({"trigger": "workspace:auto_destroy_reminder", "details": {}});
    let app = TestApp::of(terraform.clone(), write_effect).await;
    for (body, outcome) in [
        (&run, "processed"),
        (&run, "duplicate"),
        (&drift, "processed"),
        (&drift, "duplicate"),
        (&reminder, "processed"),
        (&reminder, "processed"),
    ] {
        let answered = app.send(notification(body)).await;
        assert_eq!(
            (answered.status, &*answered.outcome),
            (200, outcome),
            "{body}"
        );
    }
    assert_rows!(app.database, claims: 4, effects: 4);
}

#[tokio::test]
async fn events_of_revolut_and_retell_with_one_body_have_times_of_their_own() {
    for provider in [presets::revolut(secret()), presets::retell(secret())] {
        let declined = |at| {
            of(
                &provider,
                &json!({"event": "ORDER_PAYMENT_DECLINED", "order_id": "1"}),
            )
            .at(at)
        };
        let first = declined(ago(60));
        let sent = [
            (&first, RUNS),
            (&declined(ago(0)), RUNS),
            (&first, DUPLICATE),
        ];
        assert_runs(provider.clone(), sent).await;
    }
}

#[tokio::test]
async fn fronts_event_without_an_id_is_not_lost() {
    let front = presets::front(secret());
    let event = |kind: &str, payload: Value| {
        let body = json!({"type": kind, "payload": payload});
        // The test kit would fill in the id.
        let request = Request::post("/").body(body.to_string().into()).unwrap();
        let signed = testing::sign(&front, &secret(), request, ago(0)).unwrap();
        signed.map(Body::from)
    };
    let app = TestApp::of(front.clone(), write_effect).await;
    for (kind, payload, outcome) in [
        ("inbound_received", json!({"id": "evt_1"}), "processed"),
        ("conversation_archived", json!({"id": "evt_1"}), "processed"),
        (
            "inbound_received",
            json!({"id": "evt_1", "again": true}),
            "duplicate",
        ),
        ("contact_updated", json!({"target": "crd_1"}), "processed"),
        ("contact_updated", json!({"target": "crd_2"}), "processed"),
        ("contact_updated", json!({"target": "crd_1"}), "duplicate"),
    ] {
        let answered = app.send(event(kind, payload)).await;
        assert_eq!(
            (answered.status, &*answered.outcome),
            (200, outcome),
            "{kind}"
        );
    }
    assert_rows!(app.database, claims: 4, effects: 4);
}
