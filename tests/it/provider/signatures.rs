//! Each preset, tested through the layer, and the rotation of secrets.

use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderName, StatusCode};
use idempotent_webhook::provider::VerifyError;
use idempotent_webhook::provider::signature::{Hmac, SignatureError, SignedContent};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Delivery, Provider, Secret, Secrets, Source, presets};

use crate::support::{
    SECRET, TestApp, answer, assert_rows, github, now, secret, shopify, stripe, stripe_event,
    write_effect,
};

async fn describe(delivery: Delivery) -> String {
    let signed_at = delivery
        .signed_at()
        .map(|at| at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    format!(
        "{} {} {} {:?} {signed_at:?}",
        delivery.endpoint(),
        delivery.provider(),
        delivery.id(),
        delivery.event_type()
    )
}

#[tokio::test]
async fn a_delivery_says_what_the_provider_said() {
    let time = now();
    let app = TestApp::of(presets::stripe(secret()), describe).await;
    let expected = format!(r#"test stripe evt_1 Some("invoice.paid") Some({time})"#);
    assert_eq!(
        app.send(stripe(stripe_event("evt_1"), time)).await,
        answer(200, "processed", &expected)
    );

    let app = TestApp::github(describe).await;
    assert_eq!(
        app.send(github("guid", "any bytes")).await,
        answer(200, "processed", r#"test github guid Some("push") None"#)
    );

    let app = TestApp::of(presets::shopify(secret()), describe).await;
    assert_eq!(
        app.send(shopify("wh-1", "{}")).await,
        answer(
            200,
            "processed",
            r#"test shopify wh-1 Some("orders/create") None"#
        )
    );
}

#[tokio::test]
async fn shopifys_newer_headers_win() {
    let app = TestApp::of(presets::shopify(secret()), describe).await;
    let mut request = shopify("older", "{}");
    let headers = request.headers_mut();
    headers.insert("shopify-webhook-id", "newer".parse().unwrap());
    headers.insert("shopify-topic", "Product".parse().unwrap());
    assert_eq!(
        app.send(request).await.body,
        r#"test shopify newer Some("Product") None"#
    );
}

#[tokio::test]
async fn a_thin_stripe_event_is_identified_like_any_other() {
    let app = TestApp::of(presets::stripe(secret()), describe).await;
    let thin = r#"{"id":"evt_234","object":"v2.core.event","type":"v1.billing.meter.error"}"#;
    let answered = app.send(stripe(thin, now())).await;
    assert!(
        answered
            .body
            .contains("evt_234 Some(\"v1.billing.meter.error\")"),
        "{answered:?}"
    );
}

#[tokio::test]
async fn while_a_secret_is_rotated_both_are_valid() {
    let old = Secret::new("the old one").unwrap();
    let rotating = Secrets::new(old.clone()).and(secret());
    let app = TestApp::of(presets::github(rotating), write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.status, 200);

    let app = TestApp::of(presets::github(old), write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.status, 401);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn the_handler_gets_the_very_bytes_that_were_signed() {
    let echo = async |request: Request| {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        assert_eq!(head.headers["x-github-event"], "push");
        (StatusCode::OK, format!("{body:?}"))
    };
    let app = TestApp::github(echo).await;
    let bytes = b"\xef\xbb\xbf{\"a\": \xff\r\n}";
    assert_eq!(
        app.send(github("a", *bytes)).await.body,
        format!("{:?}", Bytes::from_static(bytes))
    );
}

#[test]
fn verification_is_pure() {
    let provider = presets::stripe(secret());
    let (head, _) = stripe(stripe_event("evt_1"), 1000).into_parts();
    let body = stripe_event("evt_1");
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);

    let verified = provider.verify(&head, body.as_bytes(), at(1300)).unwrap();
    let verified = verified.delivery().unwrap();
    assert_eq!(verified.id().as_str(), "evt_1");
    assert_eq!(verified.event_type(), Some("invoice.paid"));
    assert_eq!(verified.signed_at(), Some(at(1000)));

    assert!(matches!(
        provider.verify(&head, body.as_bytes(), at(1301)),
        Err(VerifyError::Signature(SignatureError::TooOld { .. }))
    ));
    assert!(matches!(
        provider.verify(&head, b"{}", at(1000)),
        Err(VerifyError::Signature(SignatureError::NoMatch))
    ));
}

/// The example from Slack's documentation on verifying requests.
#[test]
fn a_scheme_with_signed_content_is_a_few_lines_of_data() {
    let scheme = Hmac::hex(HeaderName::from_static("x-slack-signature"))
        .prefix("v0=")
        .timestamp_header(HeaderName::from_static("x-slack-request-timestamp"))
        .signed(
            SignedContent::new()
                .text("v0:")
                .timestamp()
                .text(":")
                .body(),
        );
    let secret = Secret::new("8f742231b10e8888abcd99yyyzzz85a5").unwrap();
    let slack = Provider::custom("slack")
        .signature(scheme, secret)
        .delivery_id(Source::body_digest());
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow\
        &channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner\
        &command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com\
        %2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
        &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let (head, ()) = Request::post("/")
        .header("X-Slack-Request-Timestamp", "1531420618")
        .header(
            "X-Slack-Signature",
            "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        )
        .body(())
        .unwrap()
        .into_parts();
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let verify = |at| slack.verify(&head, body.as_bytes(), at);
    let verified = verify(at(1_531_420_618)).unwrap();
    let verified = verified.delivery().unwrap();
    assert_eq!(verified.signed_at(), Some(at(1_531_420_618)));
    // The default tolerance of a custom provider is five minutes in both directions.
    assert!(verify(at(1_531_420_618 + 300)).is_ok());
    for wrong in [1_531_420_618 + 301, 1_531_420_618 - 301] {
        assert!(verify(at(wrong)).is_err());
    }
}

/// The signed content is `id.timestamp.body`, in base64. One header can have several signatures.
#[test]
fn a_scheme_may_sign_the_id_as_well() {
    let scheme = Hmac::base64(HeaderName::from_static("webhook-signature"))
        .prefix("v1,")
        .separator(" ")
        .timestamp_header(HeaderName::from_static("webhook-timestamp"))
        .id_header(HeaderName::from_static("webhook-id"))
        .signed(
            SignedContent::new()
                .id()
                .text(".")
                .timestamp()
                .text(".")
                .body(),
        );
    let id = Source::header(HeaderName::from_static("webhook-id"));
    let provider = Provider::custom("standard")
        .signature(scheme, secret())
        .delivery_id(id);
    assert!(provider.signs_delivery_id());

    // printf 'msg_1.1000.{}' | openssl dgst -sha256 -hmac whsec_test_secret -binary | base64
    let signature = "v1,GmNqZ+uDTiCjZVtYS9rJ8gIP/gn0SvLzEUarAvp10lo=";
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let sent = TestDelivery::new(&provider).id("msg_1").body("{}").at(now);
    let (mut head, _) = sent.request::<Bytes>().into_parts();
    assert_eq!(head.headers["webhook-timestamp"], "1000");
    assert_eq!(head.headers["webhook-signature"], signature);
    let several = format!("v1a,AA== {signature}");
    head.headers
        .insert("webhook-signature", several.parse().unwrap());
    let verified = provider.verify(&head, b"{}", now).unwrap();
    assert_eq!(verified.delivery().unwrap().id().as_str(), "msg_1");

    let mut forged = head;
    forged
        .headers
        .insert("webhook-id", "msg_2".parse().unwrap());
    assert!(provider.verify(&forged, b"{}", now).is_err());
}

#[test]
fn each_preset_says_whether_its_id_is_signed() {
    assert!(presets::stripe(secret()).signs_delivery_id());
    assert!(!presets::github(secret()).signs_delivery_id());
    assert!(!presets::shopify(secret()).signs_delivery_id());
}

#[test]
fn nothing_prints_a_secret() {
    for provider in [
        presets::stripe(secret()),
        presets::github(secret()),
        presets::shopify(secret()),
    ] {
        assert!(!format!("{provider:?}").contains(SECRET));
    }
}

/// The id `msg.1700000000` with time T and the id `msg` with time 1700000000 could have the same
/// signed content.
#[tokio::test]
async fn g1_an_id_of_standard_webhooks_with_a_full_stop_is_refused() {
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let secret = || Secret::new(key).unwrap();
    for provider in [
        presets::standard_webhooks(secret()),
        presets::svix(secret()),
    ] {
        let sent = TestDelivery::new(&provider);
        let app = TestApp::of(provider, write_effect).await;
        let dotted = sent.clone().id(format!("msg.{}", now()));
        assert_eq!(app.send(dotted.request()).await.status, 401);
        assert_eq!(app.send(sent.id("msg").request()).await.status, 200);
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}
