//! Keys by id, for many accounts, as with Plaid.

use std::time::{Duration, SystemTime};

use axum::http::{Request, Response};
use bytes::Bytes;
use idempotent_webhook::presets::{self, PlaidKeys};
use idempotent_webhook::provider::keys::KeySource;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret, Secrets};
use serde_json::{Value, json};

use super::server::{Answering, KeyServer, private_key};
use super::{REFUSED, UNAVAILABLE};
use crate::support::{TestApp, answer, assert_rows, write_effect};

fn account(client_id: &str) -> PlaidKeys {
    PlaidKeys::production(client_id, Secret::new("secret").unwrap()).unwrap()
}

fn signed(body: &str) -> TestDelivery {
    TestDelivery::new(&presets::plaid(
        PlaidKeys::given(private_key("first")).unwrap(),
    ))
    .body(body)
}

/// The answer of Plaid's API.
fn key(expired_at: &Value) -> Answering {
    let mut key: Value = serde_json::from_str(private_key("first")).unwrap();
    key.as_object_mut().unwrap().remove("d");
    key["expired_at"] = expired_at.clone();
    Answering::Text(json!({"key": key, "request_id": "r"}).to_string())
}

#[tokio::test]
async fn f1_a_key_ends_when_its_provider_says_so() {
    let server = KeyServer::new(key(&Value::Null)).await;
    let keys = server
        .source()
        .pause(Duration::ZERO)
        .max_age(Duration::ZERO);
    let provider = presets::plaid(account("id")).keys(keys);
    let app = TestApp::of(provider, write_effect).await;
    let first = app.send(signed("{}").request()).await;
    assert_eq!(first, answer(200, "processed", "done"));
    server.answer(key(&json!(1_790_000_000)));
    let captured = app.send(signed(r#"{"a":1}"#).request()).await;
    assert_eq!(captured, answer(401, "rejected", REFUSED));
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Plaid's requests do not say which account they are for, so the key may belong to any account.
#[tokio::test]
async fn f1_the_last_of_many_accounts_is_asked_too() {
    let Answering::Text(last) = key(&Value::Null) else {
        unreachable!()
    };
    let keys = KeySource::fetched(move |request: Request<Bytes>| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap();
        let last = last.clone();
        async move {
            Ok(match asked["client_id"] == "account-14" {
                true => Response::new(Bytes::from(last)),
                false => Response::builder().status(400).body(Bytes::new())?,
            })
        }
    });
    let accounts: Vec<_> = (0..15).map(|i| account(&format!("account-{i}"))).collect();
    let provider = presets::plaid(Secrets::try_from(accounts).unwrap()).keys(keys);
    let (head, body) = signed("{}").request::<Bytes>().into_parts();
    let verified = provider.verify_fetching(&head, &body, SystemTime::now());
    assert!(verified.await.is_ok());
}

#[tokio::test]
async fn f1_a_flood_at_one_account_uses_up_nothing_of_another() {
    let server = KeyServer::new(Answering::Broken).await;
    let keys = server.source();
    let of = |id: &str| -> Provider { presets::plaid(account(id)).keys(keys.clone()) };
    let flooded = TestApp::of(of("flooded"), write_effect).await;
    let delivery = signed("{}");
    for i in 0..50 {
        let request = super::with_token_header(&delivery, "plaid-verification", |header| {
            header["kid"] = format!("made-up-{i}").into();
        });
        let got = flooded.send(request).await;
        assert_eq!(got, answer(503, "rejected", UNAVAILABLE));
    }
    assert_eq!(server.asked().len(), 10);
    server.answer(key(&Value::Null));
    // The flood also uses up the fetches for the first of the two accounts. The key of that account cannot be fetched
    // at the moment, which must not affect the other account.
    let both = Secrets::new(account("flooded")).and(account("other"));
    let provider = presets::plaid(both).keys(keys.clone());
    let app = TestApp::of(provider, write_effect).await;
    for (of, id) in [
        (&app, "a"),
        (&TestApp::of(of("third"), write_effect).await, "b"),
    ] {
        let got = of
            .send(signed(&format!(r#"{{"id":"{id}"}}"#)).request())
            .await;
        assert_eq!(got, answer(200, "processed", "done"));
        assert_rows!(of.database, claims: 1, effects: 1);
    }
}
