//! Guarantee F1: keys that are fetched. No authentic request is lost while the keys rotate or cannot be fetched, no
//! forged request is accepted, and the keys are not fetched for each request.

mod apple;
mod plaid;
mod server;
mod sns;

use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Request};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use bytes::Bytes;
use futures_util::future::join_all;
use idempotent_webhook::presets::{CircleKeys, FireblocksKeys, PlaidKeys, SnsTopic};
use idempotent_webhook::provider::keys::{KeyRequest, KeySource};
use idempotent_webhook::provider::signature::{Encoding, Jwt, SignatureAlgorithm, SignatureError};
use idempotent_webhook::provider::{ResolvedTenant, SecretSource, VerifyError};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret, Source, TenantSecrets, presets};
use serde_json::{Value, json};
use tower::ServiceExt;

use self::server::{Answering, KeyServer, private_key};
use crate::support::{Answer, TestApp, answer, assert_rows, let_pass, logged, soon, write_effect};

const REFUSED: &str = "signature missing or not valid";
const UNAVAILABLE: &str = "temporarily unavailable";

/// Acme signs its webhooks with tokens, and publishes the keys at an address.
fn acme(keys: impl Into<SecretSource>) -> Provider {
    let at = KeyRequest::get("https://keys.acme.test/jwks.json");
    let scheme = Jwt::public_key(SignatureAlgorithm::Es256, at)
        .issuer("https://acme.test")
        .audience("us")
        .body_hash("body", Encoding::Hex);
    Provider::custom("acme")
        .signature(scheme, keys)
        .delivery_id(Source::json("$.id".parse().unwrap()))
}

/// A delivery that is signed with this key.
fn signed(key: &str, id: &str) -> TestDelivery {
    let signer = acme(KeySource::given(private_key(key)).unwrap());
    TestDelivery::new(&signer).id(id)
}

/// The pause between two fetches of the keys. It is longer than anything takes on a busy machine. Tests do not wait for
/// it: they advance the clock.
const PAUSE: Duration = Duration::from_secs(600);

/// An application that fetches its keys from the server.
async fn app(server: &KeyServer) -> TestApp {
    let keys = server.source().pause(PAUSE);
    TestApp::of(acme(keys), write_effect).await
}

/// Advances the clock by a pause.
async fn let_pause_pass() {
    let_pass(PAUSE + Duration::from_secs(1)).await;
}

/// Changes the header of the token in a delivery's request. The token is in the request header with this name.
fn with_token_header(
    delivery: &TestDelivery,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> Request<Body> {
    let mut request: Request<Body> = delivery.request();
    let value = request.headers()[name].to_str().unwrap();
    let token = value.strip_prefix("Bearer ").unwrap_or(value);
    let (header, rest) = token.split_once('.').unwrap();
    let mut header = serde_json::from_slice(&BASE64URL.decode(header).unwrap()).unwrap();
    change(&mut header);
    let token = format!("{}.{rest}", BASE64URL.encode(header.to_string()));
    request.headers_mut().insert(
        name.parse::<HeaderName>().unwrap(),
        HeaderValue::from_str(&token).unwrap(),
    );
    request
}

fn with_header(delivery: &TestDelivery, change: impl FnOnce(&mut Value)) -> Request<Body> {
    with_token_header(delivery, AUTHORIZATION.as_str(), change)
}

fn with_key_id(delivery: &TestDelivery, id: &str) -> Request<Body> {
    with_header(delivery, |header| header["kid"] = id.into())
}

#[tokio::test]
async fn f1_a_rotation_in_a_storm_refuses_nothing_authentic_and_accepts_nothing_else() {
    let server = KeyServer::new(Answering::Keys(vec!["first"])).await;
    // A fetch shares its thread with all requests of a storm, and the requests share a few connections. With these long
    // timeouts, no wait times out, even on a busy machine.
    let patient = Duration::from_secs(60 * 60);
    let provider =
        acme(server.source().pause(PAUSE).timeout(patient)).response_deadline(2 * patient);
    let app = TestApp::with(
        provider,
        |layer| layer.database_timeout(patient),
        write_effect,
    )
    .await;
    let storm = async |key: &str, from: u32| {
        let authentic = (from..from + 40).map(|i| signed(key, &format!("{key}-{i}")).request());
        let forged = (from..from + 40).map(|i| signed("forged", &format!("forged-{i}")).request());
        let answers = join_all(authentic.chain(forged).map(|request| app.send(request))).await;
        let (authentic, forged) = answers.split_at(40);
        for got in authentic {
            assert_eq!(*got, answer(200, "processed", "done"), "{key}-{from}");
        }
        for got in forged {
            assert_eq!(*got, answer(401, "rejected", REFUSED), "{key}-{from}");
        }
    };
    storm("first", 0).await;
    // The provider first publishes the new key next to the old one, and then uses it. Requests that are on their way
    // are still signed with the old key.
    server.answer(Answering::Keys(vec!["first", "second"]));
    let_pause_pass().await;
    tokio::join!(storm("second", 0), storm("first", 40));
    // The old key is withdrawn.
    server.answer(Answering::Keys(vec!["second"]));
    storm("second", 40).await;
    assert_rows!(app.database, claims: 160, effects: 160);
    // Each of the two sets of keys was fetched once, regardless of the number of requests.
    assert_eq!(server.asked(), ["keys.acme.test/jwks.json"; 2]);
}

#[tokio::test]
async fn f1_a_key_that_is_used_sooner_than_it_may_be_fetched_is_not_lost() {
    let server = KeyServer::new(Answering::Keys(vec!["first"])).await;
    let app = app(&server).await;
    let send = async |key: &str| app.send(signed(key, key).request()).await;
    assert_eq!(send("first").await, answer(200, "processed", "done"));
    server.answer(Answering::Keys(vec!["second"]));
    assert_eq!(send("second").await, answer(503, "rejected", UNAVAILABLE));
    let_pause_pass().await;
    assert_eq!(send("second").await, answer(200, "processed", "done"));
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn f1_keys_that_come_in_parts_are_read_to_the_end() {
    let server = KeyServer::new(Answering::Parts).await;
    let app = app(&server).await;
    let got = app.send(signed("first", "a").request()).await;
    assert_eq!(got, answer(200, "processed", "done"));
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn f1_a_client_that_panics_loses_nothing() {
    let keys = KeySource::fetched(|_: Request<Bytes>| async { panic!("on purpose") });
    let app = TestApp::of(acme(keys), write_effect).await;
    let log = logged(async {
        let got = app.send(signed("first", "a").request()).await;
        assert_eq!(got, answer(503, "rejected", UNAVAILABLE));
    })
    .await;
    assert!(log.contains("the client panicked: on purpose"), "{log}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn f1_a_key_that_was_withdrawn_ends_with_the_age_of_the_set() {
    let server = KeyServer::new(Answering::Keys(vec!["first"])).await;
    let keys = server
        .source()
        .pause(Duration::ZERO)
        .max_age(Duration::from_millis(100));
    let app = TestApp::of(acme(keys), write_effect).await;
    let first = app.send(signed("first", "a").request()).await;
    assert_eq!(first, answer(200, "processed", "done"));
    server.answer(Answering::Keys(vec!["second"]));
    tokio::time::sleep(Duration::from_millis(120)).await;
    let captured = app.send(signed("first", "b").request()).await;
    assert_eq!(captured, answer(401, "rejected", REFUSED));
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn f1_a_rotation_is_seen_where_requests_name_no_key() {
    let without_id = |name: &str| {
        let mut key: Value = serde_json::from_str(private_key(name)).unwrap();
        key.as_object_mut().unwrap().remove("kid");
        key.to_string()
    };
    let server = KeyServer::new(Answering::Text(without_id("first"))).await;
    let app = app(&server).await;
    let send = async |name: &str, id: &str| {
        let signer = acme(KeySource::given(&without_id(name)).unwrap());
        app.send(TestDelivery::new(&signer).id(id).request()).await
    };
    assert_eq!(send("first", "a").await, answer(200, "processed", "done"));
    server.answer(Answering::Text(without_id("second")));
    // A flood does not make the next fetch come sooner. Until then, it is unknown whether the key is a new one.
    for _ in 0..2 {
        let got = send("forged", "x").await;
        assert_eq!(got, answer(503, "rejected", UNAVAILABLE));
    }
    assert_eq!(server.asked().len(), 1);
    let_pause_pass().await;
    assert_eq!(send("second", "b").await, answer(200, "processed", "done"));
    assert_eq!(server.asked().len(), 2);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn f1_a_flood_of_unknown_key_ids_causes_one_fetch() {
    let server = KeyServer::new(Answering::Keys(vec!["first"])).await;
    // With the default pause.
    let app = TestApp::of(acme(server.source()), write_effect).await;
    let flood = async |expected: Answer| {
        let delivery = signed("first", "forged");
        let requests = (0..200).map(|i| with_key_id(&delivery, &format!("made-up-{i}")));
        for got in join_all(requests.map(|request| app.send(request))).await {
            assert_eq!(got, expected);
        }
    };
    // The keys were fetched for these requests.
    flood(answer(401, "rejected", REFUSED)).await;
    // The keys were not fetched for these requests, so it is unknown whether the key exists.
    flood(answer(503, "rejected", UNAVAILABLE)).await;
    assert_eq!(server.asked().len(), 1);
    let authentic = app.send(signed("first", "a").request()).await;
    assert_eq!(authentic, answer(200, "processed", "done"));
    assert_eq!(server.asked().len(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn f1_a_key_that_changes_under_its_id_is_seen_after_a_pause() {
    let server = KeyServer::new(Answering::Keys(vec!["first"])).await;
    let app = app(&server).await;
    let send = async |key: &str, id: &str| app.send(signed(key, id).request()).await;
    assert_eq!(send("first", "a").await, answer(200, "processed", "done"));
    // The server now has another key under the same id.
    server.answer(Answering::Keys(vec!["forged"]));
    for _ in 0..20 {
        assert_eq!(send("forged", "b").await, answer(401, "rejected", REFUSED));
    }
    assert_eq!(server.asked().len(), 1);
    let_pause_pass().await;
    assert_eq!(send("forged", "b").await, answer(200, "processed", "done"));
    for _ in 0..20 {
        assert_eq!(send("first", "c").await, answer(401, "rejected", REFUSED));
    }
    assert_eq!(server.asked().len(), 2);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn f1_old_keys_are_used_while_the_address_fails() {
    let server = KeyServer::new(Answering::Keys(vec!["first"])).await;
    // In each of the failures below, the keys are older than this maximum age.
    let keys = server
        .source()
        .pause(Duration::ZERO)
        .max_age(Duration::from_millis(20));
    let keys = keys.timeout(Duration::from_millis(200));
    let app = TestApp::of(acme(keys), write_effect).await;
    let send = async |key: &str, id: &str| app.send(signed(key, id).request()).await;
    assert_eq!(send("first", "0").await, answer(200, "processed", "done"));
    let broken = [
        Answering::Broken,
        Answering::Html,
        Answering::Huge,
        Answering::Redirect,
        Answering::Slow(Duration::from_secs(5)),
        Answering::Text(r#"{"keys":[]}"#.to_owned()),
    ];
    for (i, answering) in broken.into_iter().enumerate() {
        server.answer(answering);
        tokio::time::sleep(Duration::from_millis(30)).await;
        let id = format!("broken-{i}");
        assert_eq!(send("first", &id).await, answer(200, "processed", "done"));
        // At the moment, it is unknown whether the provider has this key, so the provider should send the request
        // again.
        assert_eq!(
            send("second", "new").await,
            answer(503, "rejected", UNAVAILABLE)
        );
        assert_eq!(send("forged", "x").await, answer(401, "rejected", REFUSED));
    }
    server.answer(Answering::Keys(vec!["first", "second"]));
    assert_eq!(
        send("second", "new").await,
        answer(200, "processed", "done")
    );
    assert_rows!(app.database, claims: 8, effects: 8);
}

#[tokio::test]
async fn f1_what_starts_without_network_heals() {
    let server = KeyServer::new(Answering::Broken).await;
    // While there are no keys at all, a sixth of the pause must pass between two fetches.
    let keys = server.source().pause(PAUSE);
    let app = TestApp::of(acme(keys), write_effect).await;
    let delivery = signed("first", "a");
    for _ in 0..3 {
        let response = app
            .router
            .clone()
            .oneshot(delivery.request::<Body>())
            .await
            .unwrap();
        assert_eq!(response.status(), 503);
        assert!(response.headers().contains_key(RETRY_AFTER));
    }
    // There is no fetch for each request.
    assert_eq!(server.asked().len(), 1);
    assert_rows!(app.database, claims: 0, effects: 0);
    server.answer(Answering::Keys(vec!["first"]));
    let_pause_pass().await;
    assert_eq!(
        app.send(delivery.request()).await,
        answer(200, "processed", "done")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn f1_requests_share_a_fetch_that_goes_on_when_a_sender_hangs_up() {
    let server = KeyServer::new(Answering::Slow(Duration::from_millis(300))).await;
    let app = app(&server).await;
    // The first sender hangs up while its request waits for the keys.
    let hung_up = app.send(signed("first", "hung-up").request());
    let waited = tokio::time::timeout(Duration::from_millis(100), hung_up).await;
    assert!(waited.is_err());
    let requests = (0..20).map(|i| app.send(signed("first", &i.to_string()).request()));
    for got in join_all(requests).await {
        assert_eq!(got, answer(200, "processed", "done"));
    }
    assert_eq!(server.asked().len(), 1);
    assert_rows!(app.database, claims: 20, effects: 20);
}

#[tokio::test]
async fn f1_a_request_does_not_wait_for_keys_until_its_provider_gives_up() {
    let server = KeyServer::new(Answering::Slow(Duration::from_secs(60))).await;
    let provider = acme(server.source()).response_deadline(Duration::from_millis(300));
    let app = TestApp::of(provider, write_effect).await;
    let sent = app.send(signed("first", "a").request());
    assert_eq!(soon(sent).await, answer(503, "rejected", UNAVAILABLE));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn f1_verify_fetches_nothing_and_says_what_it_needs() {
    let server = KeyServer::new(Answering::Keys(vec!["first"])).await;
    let acme = acme(server.source());
    let request: Request<Bytes> = signed("first", "a").request();
    let (head, body) = request.into_parts();
    let verify = || acme.verify(&head, &body, SystemTime::now());
    let Err(VerifyError::Signature(SignatureError::KeyNotFetched(needed))) = verify() else {
        panic!("{:?}", verify());
    };
    assert_eq!(needed.request().url(), "https://keys.acme.test/jwks.json");
    assert!(server.asked().is_empty());
    let fetched = acme.verify_fetching(&head, &body, SystemTime::now()).await;
    assert_eq!(fetched.unwrap().delivery().unwrap().id().as_str(), "a");
    // The key is known now.
    assert_eq!(verify().unwrap().delivery().unwrap().id().as_str(), "a");
}

#[test]
fn f1_a_provider_that_needs_keys_says_so_before_the_first_request() {
    let secrets: SecretSource = Secret::new("any").unwrap().into();
    let error = acme(secrets).check_secrets().unwrap_err().to_string();
    assert!(error.contains("set `Provider::keys`"), "{error}");
}

#[tokio::test]
async fn f1_a_fetch_that_takes_longer_than_its_request_waits_is_not_in_vain() {
    let server = KeyServer::new(Answering::Slow(Duration::from_millis(500))).await;
    let provider = acme(server.source()).response_deadline(Duration::from_millis(200));
    let app = TestApp::of(provider, write_effect).await;
    let send = async || app.send(signed("first", "a").request()).await;
    assert_eq!(send().await, answer(503, "rejected", UNAVAILABLE));
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(send().await, answer(200, "processed", "done"));
    assert_eq!(server.asked().len(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn f1_an_unknown_tenant_is_refused_as_a_wrong_signature_is() {
    let server = KeyServer::new(Answering::Broken).await;
    let tenants = TenantSecrets::new(
        |head| head.uri.query().map(str::to_owned),
        async |name: String| Ok((name == "known").then(|| Secret::new("a secret").unwrap())),
    );
    let keys = server.source().pause(PAUSE);
    let app = TestApp::of(acme(tenants).keys(keys), write_effect).await;
    // Neither the answer nor the fetches reveal which tenants exist.
    for tenant in ["known", "unknown"] {
        let request = signed("forged", "x").uri(&format!("/?{tenant}")).request();
        assert_eq!(
            app.send(request).await,
            answer(503, "rejected", UNAVAILABLE)
        );
    }
    server.answer(Answering::Keys(vec!["first"]));
    let_pause_pass().await;
    for tenant in ["known", "unknown"] {
        let request = signed("forged", "x").uri(&format!("/?{tenant}")).request();
        assert_eq!(
            app.send(request).await,
            answer(503, "rejected", UNAVAILABLE)
        );
    }
    let authentic = signed("first", "a").uri("/?known").request();
    let got = app.send(authentic).await;
    assert_eq!(got, answer(200, "processed", "done"));
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The keys are given, so no later fetch could change the answer.
#[tokio::test]
async fn f1_what_is_signed_with_none_of_the_keys_that_were_given_is_refused_for_good() {
    let tenants = TenantSecrets::new(
        |head| head.uri.query().map(str::to_owned),
        async |name: String| Ok((name == "known").then(|| Secret::new("a secret").unwrap())),
    );
    let given = || KeySource::given(private_key("first")).unwrap();
    let app = TestApp::of(acme(tenants).keys(given()), write_effect).await;
    for tenant in ["known", "unknown"] {
        let request = signed("forged", "x").uri(&format!("/?{tenant}")).request();
        let got = app.send(request).await;
        assert_eq!(got, answer(401, "rejected", REFUSED), "{tenant}");
    }
    assert_rows!(app.database, claims: 0, effects: 0);

    let (head, _) = with_key_id(&signed("first", "x"), "another").into_parts();
    assert!(matches!(
        acme(given()).verify(&head, b"{}", SystemTime::now()),
        Err(VerifyError::Signature(SignatureError::UnknownKey))
    ));
}

/// The secret of a tenant determines which keys are fetched. For an unknown tenant, the layer needs a placeholder
/// secret that does the same.
#[tokio::test]
async fn f1_an_unknown_tenant_is_refused_as_a_known_one_where_the_secret_has_an_address() {
    fn tenants<S>(keys: fn() -> S) -> TenantSecrets<S>
    where
        S: Into<Secret> + Into<ResolvedTenant<S>> + Send + 'static,
    {
        TenantSecrets::new(
            |head| head.uri.query().map(str::to_owned),
            move |name: String| {
                let found = (name == "known").then(keys);
                async move { Ok(found) }
            },
        )
    }
    let rsa = include_str!("../../keys/rsa.pem");
    let p256 = include_str!("../../keys/p256.pem");
    let plaid: fn() -> PlaidKeys =
        || PlaidKeys::production("a-client", Secret::new("a secret").unwrap()).unwrap();
    let circle: fn() -> CircleKeys =
        || CircleKeys::fetched("https://api.circle.com/v2/notifications/publicKey").unwrap();
    let sns: fn() -> SnsTopic =
        || SnsTopic::new("arn:aws:sns:us-east-1:123456789012:orders").unwrap();
    let certificate = include_str!("../../keys/sns.pem");
    for (signer, provider, key) in [
        (
            presets::plaid(PlaidKeys::given(private_key("first")).unwrap()),
            presets::plaid(tenants(plaid)),
            private_key("first"),
        ),
        (
            presets::circle(CircleKeys::given(p256).unwrap()),
            presets::circle(tenants(circle)),
            p256,
        ),
        (
            presets::fireblocks(FireblocksKeys::given(rsa).unwrap()),
            presets::fireblocks(tenants(FireblocksKeys::us)),
            rsa,
        ),
        (
            presets::aws_sns(sns()).keys(KeySource::given(certificate).unwrap()),
            presets::aws_sns(tenants(sns)),
            certificate,
        ),
    ] {
        let name = provider.name().to_owned();
        // The address fails, or it returns the key that the request names.
        for answering in [Answering::Broken, Answering::Text(key.to_owned())] {
            let server = KeyServer::new(answering).await;
            let app = TestApp::of(provider.clone().keys(server.source()), write_effect).await;
            for tenant in ["known", "unknown", "known"] {
                let delivery = TestDelivery::new(&signer).uri(&format!("/?{tenant}"));
                // An SNS signature does not cover the whole message.
                let tampered: Request<Bytes> = delivery.tampered().request();
                let tampered = tampered.map(|body| {
                    let body = String::from_utf8(body.to_vec()).unwrap();
                    Body::from(body.replace(r#""Message":"""#, r#""Message":"x""#))
                });
                let got = app.send(tampered).await;
                assert_eq!(
                    got,
                    answer(503, "rejected", UNAVAILABLE),
                    "{name}, {tenant}"
                );
            }
            assert!(!server.asked().is_empty(), "{name}");
            assert_rows!(app.database, claims: 0, effects: 0);
        }
    }
}

#[test]
fn f1_a_key_is_for_the_algorithm_that_it_names_alone() {
    let with_algorithm = |name: &str| {
        let mut key: Value = serde_json::from_str(private_key("first")).unwrap();
        key["alg"] = name.into();
        acme(KeySource::given(&key.to_string()).unwrap())
    };
    let request: Request<Bytes> = signed("first", "a").request();
    let (head, body) = request.into_parts();
    let verify = |provider: Provider| provider.verify(&head, &body, SystemTime::now());
    assert!(verify(with_algorithm("ES256")).is_ok());
    assert!(verify(with_algorithm("ES384")).is_err());
}

#[test]
fn f1_keys_do_not_stand_in_the_place_of_a_secret() {
    let keys = || KeySource::given(private_key("first")).unwrap();
    assert!(acme(keys()).check_secrets().is_ok());
    assert!(presets::github(keys()).check_secrets().is_err());
}

#[tokio::test]
async fn f2_a_forged_token_is_refused_with_its_reason_in_the_log() {
    let server = KeyServer::new(Answering::Keys(vec!["first"])).await;
    let keys = server.source().pause(Duration::ZERO);
    let app = TestApp::of(acme(keys), write_effect).await;
    let delivery = signed("first", "forged");
    let changed =
        |name: &'static str, value: Value| with_header(&delivery, |header| header[name] = value);
    let for_another = acme(KeySource::given(private_key("first")).unwrap());
    let at = KeyRequest::get("https://keys.acme.test/jwks.json");
    let of = |issuer: &'static str, audience: &'static str| {
        let scheme = Jwt::public_key(SignatureAlgorithm::Es256, at.clone())
            .issuer(issuer)
            .audience(audience)
            .body_hash("body", Encoding::Hex);
        let keys = KeySource::given(private_key("first")).unwrap();
        let signer = Provider::custom("acme").signature(scheme, keys);
        TestDelivery::new(&signer.delivery_id(Source::json("$.id".parse().unwrap())))
    };
    let ago = |seconds| {
        TestDelivery::new(&for_another).at(SystemTime::now() - Duration::from_secs(seconds))
    };
    let later = SystemTime::now() + Duration::from_secs(3600);
    let jwk: Value = serde_json::from_str(private_key("forged")).unwrap();
    let with_own_key = |name: &'static str, value: Value| {
        let forged = signed("forged", "x");
        with_header(&forged, |header| {
            header[name] = value;
            header["kid"] = "own".into();
        })
    };
    for (request, reason) in [
        (changed("alg", "none".into()), "another algorithm"),
        (changed("alg", "None".into()), "another algorithm"),
        (changed("alg", "HS256".into()), "another algorithm"),
        (changed("alg", "RS256".into()), "another algorithm"),
        (
            changed("crit", json!(["exp"])),
            "header authorization is malformed",
        ),
        (
            with_key_id(&delivery, "../../other.json"),
            "no key of the id",
        ),
        (with_key_id(&delivery, "second"), "no key of the id"),
        (
            with_own_key("jku", "https://evil.test/jwks.json".into()),
            "no key of the id",
        ),
        (
            with_own_key("x5u", "https://evil.test/x.pem".into()),
            "no key of the id",
        ),
        (with_own_key("jwk", jwk), "no key of the id"),
        (
            signed("forged", "x").request(),
            "matches none of the secrets",
        ),
        (delivery.tampered().request(), "matches none of the secrets"),
        (
            of("https://acme.test", "them").request(),
            "another audience (`aud`)",
        ),
        (
            of("https://evil.test", "us").request(),
            "another issuer (`iss`)",
        ),
        (ago(3600).request(), "the signature expired"),
        (
            delivery.at(later).request(),
            "the signature is not valid for another",
        ),
    ] {
        let log = logged(async {
            let got = app.send(request).await;
            assert_eq!(got, answer(401, "rejected", REFUSED), "{reason}");
        })
        .await;
        assert!(log.contains(reason), "{reason}: {log}");
        assert!(!log.contains("evil.test"), "{log}");
    }
    assert_rows!(app.database, claims: 0, effects: 0);
    // No address that a token names was requested.
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked == "keys.acme.test/jwks.json")
    );
}
