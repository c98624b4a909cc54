//! Guarantee G2: a delivery without a usable id is refused, never processed without dedupe.

use axum::http::HeaderName;
use idempotent_webhook::{Source, presets};

use crate::support::{
    TestApp, acme, answer, assert_rows, github, now, secret, stripe, write_effect,
};

#[tokio::test]
async fn g2_a_json_id_that_is_not_usable_is_a_400_and_leaves_no_row() {
    // Signed as GitHub signs, so that the test kit sends each body unchanged.
    let app = TestApp::of(acme(Source::json("$.id".parse().unwrap())), write_effect).await;
    let fault = |fault: &str| format!("no usable delivery id: $.id is {fault}");
    let wrong_type = fault("neither a string nor an integer");
    let not_json = "the body is not valid JSON".to_owned();
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    for (body, text) in [
        (String::new(), not_json.clone()),
        ("{".into(), not_json.clone()),
        (r#"{"id":"evt_1"}["#.into(), not_json.clone()),
        (
            "\u{feff}\u{feff}{\"id\":\"evt_1\"}".into(),
            not_json.clone(),
        ),
        ("[".repeat(100_000), not_json.clone()),
        ("{}".into(), fault("missing")),
        ("[]".into(), fault("missing")),
        (r#"{"data":{"id":"evt_1"}}"#.into(), fault("missing")),
        (r#"{"id":1.5}"#.into(), wrong_type.clone()),
        (r#"{"id":true}"#.into(), wrong_type.clone()),
        (r#"{"id":null}"#.into(), wrong_type.clone()),
        (r#"{"id":{}}"#.into(), wrong_type.clone()),
        (format!(r#"{{"id":{deep}}}"#), wrong_type.clone()),
        (r#"{"id":"\ud800"}"#.into(), wrong_type),
        (r#"{"id":""}"#.into(), fault("blank")),
        (r#"{"id":" \t"}"#.into(), fault("blank")),
        (
            r#"{"id":"\u0000"}"#.into(),
            fault("not free of control characters"),
        ),
        (
            format!(r#"{{"id":"{}"}}"#, "a".repeat(10_000)),
            fault("longer than 255 bytes"),
        ),
        (
            r#"{"id":"evt_1","id":"evt_2"}"#.into(),
            "no usable delivery id: a member is in the body twice".into(),
        ),
    ] {
        let shown: String = body.chars().take(40).collect();
        assert_eq!(
            app.send(github("", body)).await,
            answer(400, "rejected", &text),
            "{shown}"
        );
    }
    let not_utf8 = b"{\"id\":\"evt_1\",\"name\":\"\xff\"}";
    assert_eq!(
        app.send(github("", *not_utf8)).await,
        answer(400, "rejected", &not_json)
    );
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn unusual_ids_that_are_usable_are_kept_to_the_byte() {
    let app = TestApp::of(presets::stripe(secret()), write_effect).await;
    for (body, id) in [
        (
            r#"{"id":123456789012345678901234567890}"#,
            "123456789012345678901234567890",
        ),
        (
            r#"{"id":123456789012345678901234567891}"#,
            "123456789012345678901234567891",
        ),
        (
            r#"{"id":"'; drop table effects; --"}"#,
            "'; drop table effects; --",
        ),
        // The body starts with a byte order mark.
        ("\u{feff}{\"id\":\"marked\"}", "marked"),
        (r#"{"id":"\u00e9\ud83d\ude00"}"#, "é😀"),
        (r#"{"id":"É😀"}"#, "É😀"),
    ] {
        assert_eq!(
            app.send(stripe(body, now())).await,
            answer(200, "processed", "done"),
            "{body}"
        );
        let stored: bool = sqlx::query_scalar(
            "select exists (
                select from idempotent_webhook.deliveries d join effects using (delivery_id)
                where endpoint = 'test' and d.delivery_id = $1
            )",
        )
        .bind(id)
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
        assert!(stored, "{id}");
    }
    assert_rows!(app.database, claims: 6, effects: 6);
}

#[tokio::test]
async fn g2_a_header_id_that_is_not_usable_is_a_400_and_leaves_no_row() {
    let app = TestApp::github(write_effect).await;
    let fault = |fault: &str| format!("no usable delivery id: header x-github-delivery is {fault}");
    let with = |values: &[&[u8]]| {
        let mut request = github("", "{}");
        let headers = request.headers_mut();
        headers.remove("x-github-delivery");
        for value in values {
            headers.append("x-github-delivery", (*value).try_into().unwrap());
        }
        request
    };
    let long = "a".repeat(256);
    for (values, text) in [
        (&[][..], fault("missing")),
        (&[b"".as_slice()], fault("blank")),
        (&[b" \t "], fault("blank")),
        (&[b"caf\xe9"], fault("not visible ASCII")),
        (&["😀".as_bytes()], fault("not visible ASCII")),
        (&[b"a", b"b"], fault("there more than once")),
        (&[long.as_bytes()], fault("longer than 255 bytes")),
    ] {
        assert_eq!(app.send(with(values)).await, answer(400, "rejected", &text));
    }
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);

    let not_utf8 = github("a", *b"{\"a\":\"\xff\"}");
    assert_eq!(
        app.send(not_utf8).await,
        answer(200, "processed", "done"),
        "an id in a header does not depend on the body"
    );
}

#[tokio::test]
async fn g2_composite_ids_do_not_collide() {
    let header = |name| Source::header(HeaderName::from_static(name));
    let app = TestApp::of(acme(header("x-a").and(header("x-b"))), write_effect).await;
    let with = |a: &str, b: &str| {
        let mut request = github("", "{}");
        request.headers_mut().insert("x-a", a.parse().unwrap());
        request.headers_mut().insert("x-b", b.parse().unwrap());
        request
    };
    for request in [with("ab", "c"), with("a", "bc"), with("a1:b", "c")] {
        assert_eq!(app.send(request).await.outcome, "processed");
    }
    assert_eq!(app.send(with("a", "bc")).await.outcome, "duplicate");
    assert_rows!(app.database, claims: 3, effects: 3);
}

#[tokio::test]
async fn a_body_digest_tells_bodies_apart() {
    let app = TestApp::of(acme(Source::body_digest()), write_effect).await;
    for (body, outcome) in [
        ("a", "processed"),
        ("b", "processed"),
        ("a", "duplicate"),
        ("", "processed"),
        ("", "duplicate"),
    ] {
        assert_eq!(app.send(github("any", body)).await.outcome, outcome);
    }
    assert_rows!(app.database, claims: 3, effects: 3);
}

#[tokio::test]
async fn g14_a_deep_document_is_only_read() {
    let app = TestApp::of(presets::stripe(secret()), write_effect).await;
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let body = format!(r#"{{"data":{deep},"id":"evt_1"}}"#);
    assert_eq!(
        app.send(stripe(body, now())).await,
        answer(200, "processed", "done")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// An id can be a plain text, or composed of several parts. A sender that chooses a plain id cannot
/// make it equal to a composed one.
#[tokio::test]
async fn g2_a_plain_alternative_does_not_collide_with_a_composite() {
    let header = |name| Source::header(HeaderName::from_static(name));
    let either = header("x-a").and(header("x-b")).or(header("x-c"));
    let app = TestApp::of(acme(either), write_effect).await;
    let with = |headers: &[(&'static str, &str)]| {
        let mut request = github("", "{}");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        request
    };
    for headers in [
        &[("x-a", "ab"), ("x-b", "c")][..],
        &[("x-c", "2:ab1:c")],
        &[("x-c", "7:2:ab1:c")],
        &[("x-c", "ab")],
        &[("x-c", "2:ab")],
    ] {
        for outcome in ["processed", "duplicate"] {
            assert_eq!(
                app.send(with(headers)).await.outcome,
                outcome,
                "{headers:?}"
            );
        }
    }
    assert_rows!(app.database, claims: 5, effects: 5);
}
