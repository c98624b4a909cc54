//! If a feature is off, the error names it.
#![cfg(test)]

use std::convert::Infallible;
use std::error::Error;
use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Delivery, HandlerError, Secret, VerifiedWebhook, presets};
use tower::{Layer, ServiceExt, service_fn};

#[test]
fn a_preset_that_is_not_there_names_its_feature() {
    for (name, error) in [
        ("twilio", "the preset `twilio` needs the feature `sha1`"),
        ("aws-sns", "the preset `aws-sns` needs the feature `x509`"),
        (
            "ebay",
            "the preset `ebay` needs the features `p256`, `sha1`",
        ),
        ("unheard-of", "there is no preset `unheard-of`"),
    ] {
        assert_eq!(presets::by_name(name).unwrap_err().to_string(), error);
    }
    assert_eq!(presets::by_name("github").unwrap().name(), "github");
}

/// The providers are YouTube's hub, older webhooks of Sumsub, and Standard Webhooks with a key
/// pair.
#[test]
fn a_signature_by_an_algorithm_that_is_off_names_its_feature() {
    let secret = |text: &str| Secret::new(text).unwrap();
    let signature = "0".repeat(40);
    let requests = [
        (
            presets::websub(secret("a secret")),
            "sha1",
            vec![("x-hub-signature", format!("sha1={signature}"))],
        ),
        (
            presets::sumsub(secret("a secret")),
            "sha1",
            vec![
                ("x-payload-digest-alg", "HMAC_SHA1_HEX".into()),
                ("x-payload-digest", signature),
            ],
        ),
        (
            presets::standard_webhooks(secret("whpk_aGVsbG8=")),
            "ed25519",
            vec![
                ("webhook-id", "msg_1".into()),
                ("webhook-timestamp", "1750000000".into()),
                ("webhook-signature", format!("v1a,{}==", "A".repeat(86))),
            ],
        ),
    ];
    for (provider, feature, headers) in requests {
        let mut request = Request::post("/");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let error = provider
            .verify(&head, b"{}", SystemTime::now())
            .unwrap_err();
        assert_eq!(
            error.source().unwrap().to_string(),
            format!(
                "the signature can only be verified with this crate's feature `{feature}`, which is off"
            )
        );
    }
}

/// This works on any tower service, without axum and without Postgres.
#[tokio::test]
async fn v2_a_plain_service_gets_what_is_authentic() {
    let github = presets::github(Secret::new("a secret").unwrap());
    let push = TestDelivery::new(&github).id("a").body("the body");
    let handler = service_fn(
        async |request: Request<Full<Bytes>>| -> Result<Response<Full<Bytes>>, Infallible> {
            let Some(delivery) = request.extensions().get::<Delivery>().cloned() else {
                return Ok(HandlerError::new("no delivery").into_response());
            };
            let body = request.into_body().collect().await?.to_bytes();
            let text = format!("{}: {}", delivery.id(), String::from_utf8_lossy(&body));
            Ok(Response::new(text.into()))
        },
    );
    let service = VerifiedWebhook::new("test", github).layer(handler);
    let response = service.clone().oneshot(push.request()).await.unwrap();
    assert_eq!(response.headers()["x-webhook-outcome"], "verified");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "a: the body");

    let mut forged: Request<Full<Bytes>> = push.request();
    *forged.body_mut() = "another body".into();
    let response = service.oneshot(forged).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}
