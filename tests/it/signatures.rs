//! Each preset through the layer, and the rotation of secrets.

use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use idempotent_webhook::{Delivery, Provider, Secret, Secrets, SignatureError, VerifyError};

use crate::support::{
    SECRET, Webhook, answer, github, now, ok, secret, shopify, stripe, stripe_event,
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
    let webhook = Webhook::of(Provider::stripe(secret()), describe).await;
    let expected = format!(r#"test stripe evt_1 Some("invoice.paid") Some({time})"#);
    assert_eq!(
        webhook.send(stripe(stripe_event("evt_1"), time)).await,
        answer(200, "processed", &expected)
    );

    let webhook = Webhook::of(Provider::github(secret()), describe).await;
    assert_eq!(
        webhook.send(github("guid", "any bytes")).await,
        answer(200, "processed", r#"test github guid Some("push") None"#)
    );

    let webhook = Webhook::of(Provider::shopify(secret()), describe).await;
    assert_eq!(
        webhook.send(shopify("wh-1", "{}")).await,
        answer(
            200,
            "processed",
            r#"test shopify wh-1 Some("orders/create") None"#
        )
    );
}

#[tokio::test]
async fn shopifys_newer_headers_win() {
    let webhook = Webhook::of(Provider::shopify(secret()), describe).await;
    let mut request = shopify("older", "{}");
    let headers = request.headers_mut();
    headers.insert("shopify-webhook-id", "newer".parse().unwrap());
    headers.insert("shopify-topic", "Product".parse().unwrap());
    assert_eq!(
        webhook.send(request).await.body,
        r#"test shopify newer Some("Product") None"#
    );
}

#[tokio::test]
async fn a_thin_stripe_event_is_identified_like_any_other() {
    let webhook = Webhook::of(Provider::stripe(secret()), describe).await;
    let thin = r#"{"id":"evt_234","object":"v2.core.event","type":"v1.billing.meter.error"}"#;
    let answered = webhook.send(stripe(thin, now())).await;
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
    let webhook = Webhook::of(Provider::github(rotating), ok).await;
    assert_eq!(webhook.send(github("a", "{}")).await.status, 200);

    let webhook = Webhook::of(Provider::github(old), ok).await;
    assert_eq!(webhook.send(github("a", "{}")).await.status, 401);
    assert_eq!(webhook.database.rows().await, (0, 0));
}

#[tokio::test]
async fn the_handler_gets_the_very_bytes_that_were_signed() {
    let echo = async |request: Request| {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        assert_eq!(head.headers["x-github-event"], "push");
        (StatusCode::OK, format!("{body:?}"))
    };
    let webhook = Webhook::new(echo).await;
    let bytes = b"\xef\xbb\xbf{\"a\": \xff\r\n}";
    assert_eq!(
        webhook.send(github("a", *bytes)).await.body,
        format!("{:?}", Bytes::from_static(bytes))
    );
}

#[test]
fn verification_is_pure() {
    let provider = Provider::stripe(secret());
    let (head, _) = stripe(stripe_event("evt_1"), 1000).into_parts();
    let body = stripe_event("evt_1");
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);

    let verified = provider.verify(&head, body.as_bytes(), at(1300)).unwrap();
    assert_eq!(verified.delivery_id().as_str(), "evt_1");
    assert_eq!(verified.event_type(), Some("invoice.paid"));
    assert_eq!(verified.signed_at(), Some(at(1000)));

    assert!(matches!(
        provider.verify(&head, body.as_bytes(), at(1301)),
        Err(VerifyError::Signature(SignatureError::TooOld))
    ));
    assert!(matches!(
        provider.verify(&head, b"{}", at(1000)),
        Err(VerifyError::Signature(SignatureError::NoMatch))
    ));
}

#[test]
fn each_preset_says_whether_its_id_is_signed() {
    assert!(Provider::stripe(secret()).signs_delivery_id());
    assert!(!Provider::github(secret()).signs_delivery_id());
    assert!(!Provider::shopify(secret()).signs_delivery_id());
}

#[test]
fn nothing_prints_a_secret() {
    for provider in [
        Provider::stripe(secret()),
        Provider::github(secret()),
        Provider::shopify(secret()),
    ] {
        assert!(!format!("{provider:?}").contains(SECRET));
    }
}
