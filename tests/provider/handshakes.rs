//! Handshakes and other answers that the layer gives before it claims anything, so that no database is needed.

use std::convert::Infallible;
use std::future::Ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use idempotent_webhook::presets::EbayEndpoint;
use idempotent_webhook::provider::keys::KeySource;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    IdempotentWebhook, Provider, Secret, TenantSecrets, VerifiedWebhook, presets,
};
use sqlx::PgPool;
use tower::util::ServiceFn;
use tower::{Layer, Service, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);

type Body = Full<Bytes>;

type Handler = ServiceFn<fn(Request<Body>) -> Ready<Result<Response<Body>, Infallible>>>;

fn secret() -> Secret {
    Secret::new("a secret").unwrap()
}

/// Calls the layer, and then `VerifiedWebhook`, which must give the same answer. No request may reach the handler, and
/// the database does not exist.
async fn call(provider: Provider, request: Request<Body>) -> Response<Bytes> {
    let verified = VerifiedWebhook::new("test", provider.clone()).lookup_timeout(SECOND);
    let mut copy = Request::new(request.body().clone());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    let of_verified = answer(verified, copy).await;
    let response = call_once(provider, request).await;
    assert_eq!(of_verified.status(), response.status());
    assert_eq!(of_verified.headers(), response.headers());
    assert_eq!(of_verified.body(), response.body());
    response
}

/// Calls only the layer, because the request has an effect that happens only once.
async fn call_once(provider: Provider, request: Request<Body>) -> Response<Bytes> {
    let pool = PgPool::connect_lazy("postgres://nobody@127.0.0.1:1/none").unwrap();
    let layer = IdempotentWebhook::new(pool, "test", provider).database_timeout(SECOND);
    answer(layer, request).await
}

async fn answer<L>(layer: L, request: Request<Body>) -> Response<Bytes>
where
    L: Layer<Handler>,
    L::Service: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let handler: Handler = service_fn(|_| panic!("the handler was called"));
    let response = layer.layer(handler).oneshot(request).await;
    let (head, body) = response.unwrap().into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

fn request(method: Method, uri: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.to_owned().into()).unwrap()
}

fn get(uri: &str) -> Request<Body> {
    request(Method::GET, uri, &[], "")
}

fn assert_answer(response: &Response<Bytes>, status: u16, outcome: &str, body: &str) {
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["x-webhook-outcome"], outcome);
    assert_eq!(response.body(), body);
}

/// The answer to a token is also the signature of a body with the same text, so the layer does not answer a token that
/// could be such a body.
#[tokio::test]
async fn x_is_not_told_the_signature_of_a_json_object() {
    let challenge = |query: &str| call(presets::x(secret()), get(&format!("/?crc_token={query}")));
    assert_answer(
        &challenge("bWF5IDE").await,
        200,
        "handshake",
        // The HMAC-SHA256 of the token in base64, computed with Python.
        r#"{"response_token":"sha256=7xC+oN3mBrGDvLKY6uCPnsK9TMtBxErgrWACi2BHGf4="}"#,
    );
    for json in [
        "%7B%7D",
        "%7B%22for_user_id%22:%221%22%7D",
        "%5B1%5D",
        "%22a%22",
        "",
    ] {
        let response = challenge(json).await;
        assert_answer(&response, 405, "rejected", "method not allowed");
    }
}

#[tokio::test]
async fn the_answer_to_a_challenge_of_x_signs_no_request() {
    let x = presets::x(secret());
    let response = call(x.clone(), get("/?crc_token=bWF5IDE")).await;
    let answer: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    let signature = answer.get("response_token").unwrap().as_str().unwrap();
    let headers = [("x-twitter-webhooks-signature", signature)];
    let forged = request(Method::POST, "/", &headers, "bWF5IDE");
    let response = call(x, forged).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

/// The layer answers 503, because Event Grid does not deliver again after a 401.
#[tokio::test]
async fn event_grids_event_under_another_secret_is_to_come_again() {
    let event_grid = presets::azure_event_grid(secret());
    let delivery = TestDelivery::new(&event_grid).body("{}");
    let other = Secret::new("another").unwrap();
    for refused in [delivery.unsigned(), delivery.clone().secret(other)] {
        let response = call(event_grid.clone(), refused.request()).await;
        let text = "signature missing or not valid";
        assert_answer(&response, 503, "rejected", text);
    }
}

#[tokio::test]
async fn fronts_and_dropbox_signs_checks_of_a_url_are_answered_if_they_are_signed() {
    let front = presets::front(secret());
    let sync = TestDelivery::new(&front)
        .header(
            http::HeaderName::from_static("x-front-challenge"),
            "c4a11e4e",
        )
        .body(r#"{"type":"sync","authorization":{"id":"cmp_abc"}}"#);
    let response = call(front.clone(), sync.request()).await;
    assert_answer(&response, 200, "handshake", r#"{"challenge":"c4a11e4e"}"#);
    let response = call(front, sync.tampered().request()).await;
    assert_eq!(response.status(), 401);

    let dropbox_sign = presets::dropbox_sign(secret());
    let test = TestDelivery::new(&dropbox_sign).body(r#"{"event":{"event_type":"callback_test"}}"#);
    let response = call(dropbox_sign, test.request()).await;
    assert_answer(&response, 200, "handshake", "Hello API Event Received");
}

#[tokio::test]
async fn metas_challenge_is_answered_if_the_token_is_right() {
    let meta = || presets::meta(secret()).verify_token(Secret::new("my token").unwrap());
    let query = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=my+token";
    let response = call(meta(), get(&format!("/meta?{query}"))).await;
    assert_answer(&response, 200, "handshake", "1158201444");
    assert_eq!(
        response.headers()["content-type"],
        "text/plain; charset=utf-8"
    );

    for wrong in [
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=another",
        "hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=my+token",
        "hub.mode=subscribe&hub.challenge=1",
        "hub.mode=subscribe&hub.verify_token=my+token",
        "",
    ] {
        let response = call(meta(), get(&format!("/meta?{wrong}"))).await;
        assert_answer(&response, 405, "rejected", "method not allowed");
    }
    let without_token = presets::meta(secret());
    let response = call(without_token, get(&format!("/meta?{query}"))).await;
    assert_answer(&response, 405, "rejected", "method not allowed");
}

#[tokio::test]
async fn mondays_challenge_is_answered_with_the_same_json() {
    let monday = || presets::monday(secret()).public_url("https://example.com".parse().unwrap());
    let post = |body: &str| request(Method::POST, "/monday", &[], body);
    let response = call(monday(), post(r#"{ "challenge": "3eZ<b>\u00fc" }"#)).await;
    assert_answer(&response, 200, "handshake", r#"{"challenge":"3eZ<b>ü"}"#);
    assert_eq!(response.headers()["content-type"], "application/json");

    for other in [
        r#"{"challenge":"x","event":{"triggerUuid":"1"}}"#,
        r#"{"challenge":{}}"#,
        r#"["challenge"]"#,
        "{}",
        "",
    ] {
        let response = call(monday(), post(other)).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{other}");
    }
    // Anyone can send such a request, so its length is bounded.
    for (length, status) in [(4000, StatusCode::OK), (5000, StatusCode::UNAUTHORIZED)] {
        let long = format!(r#"{{"challenge":"{}"}}"#, "x".repeat(length));
        let response = call(monday(), post(&long)).await;
        assert_eq!(response.status(), status);
    }
    let put = request(Method::PUT, "/monday", &[], r#"{"challenge":"x"}"#);
    let response = call(monday(), put).await;
    assert_answer(&response, 405, "rejected", "method not allowed");
}

#[tokio::test]
async fn ebays_challenge_is_answered_with_its_hash_if_the_url_is_known() {
    let ebay = |token: &str| {
        let asked = |_: Request<Bytes>| async { Err("nothing is to be fetched".into()) };
        presets::ebay(token.parse::<EbayEndpoint>().unwrap()).keys(KeySource::fetched(asked))
    };
    const TOKEN: &str = "71745723-d031-455c-bfa5-f90d11b4f20a";
    let url = || "https://hooks.example.com".parse().unwrap();
    let challenge = || get("/ebay?challenge_code=a8628072-3d33-45ee-9004-bee86830a22d");
    // printf 'efa0370e481c7bb8c2844846814c2e9c8c3d0f4d0fd6498746fb271e9b5111e9' <code><token>https://hooks.example.com/ebay | sha256sum
    let expected = r#"{"challengeResponse":"efa0370e481c7bb8c2844846814c2e9c8c3d0f4d0fd6498746fb271e9b5111e9"}"#;
    for token in [TOKEN.to_owned(), format!("sandbox:{TOKEN}")] {
        let response = call(ebay(&token).public_url(url()), challenge()).await;
        assert_answer(&response, 200, "handshake", expected);
        assert_eq!(response.headers()["content-type"], "application/json");
    }
    let response = call(ebay(TOKEN), challenge()).await;
    assert_answer(&response, 405, "rejected", "method not allowed");
    let response = call(ebay(TOKEN).public_url(url()), get("/ebay?a=b")).await;
    assert_answer(&response, 405, "rejected", "method not allowed");
    let post = request(Method::POST, "/ebay?challenge_code=a", &[], "{}");
    let response = call(ebay(TOKEN).public_url(url()), post).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

/// After an internal error, Vonage sends the callback without a signature. Only a 5xx makes Vonage send it again with a
/// signature.
#[tokio::test]
async fn vonages_unsigned_callback_is_to_come_again() {
    let vonage = presets::vonage(secret());
    let delivery = TestDelivery::new(&vonage);
    for refused in [delivery.unsigned(), delivery.tampered()] {
        let response = call(vonage.clone(), refused.request()).await;
        let text = "signature missing or not valid";
        assert_answer(&response, 503, "rejected", text);
    }
}

#[tokio::test]
async fn dropboxs_challenge_is_answered_as_text_that_is_not_sniffed() {
    let dropbox = || presets::dropbox(secret());
    let response = call(dropbox(), get("/dropbox?challenge=a%20%3Cb%3E")).await;
    assert_answer(&response, 200, "handshake", "a <b>");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");

    let response = call(dropbox(), get("/dropbox")).await;
    assert_answer(&response, 405, "rejected", "method not allowed");
    let unsigned = request(Method::POST, "/dropbox?challenge=a", &[], "{}");
    let response = call(dropbox(), unsigned).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn no_text_that_anyone_can_choose_is_sniffed() {
    let verified = presets::meta(secret()).verify_token(Secret::new("token").unwrap());
    let subscribe = "/?hub.mode=subscribe&hub.challenge=%3Cb%3E&hub.verify_token=token";
    let post = |uri| request(Method::POST, uri, &[], "");
    for (provider, request) in [
        (presets::nylas(secret()), get("/?challenge=%3Cb%3E")),
        (
            presets::microsoft_graph(secret()),
            post("/?validationToken=%3Cb%3E"),
        ),
        (verified, get(subscribe)),
    ] {
        let response = call(provider, request).await;
        assert_answer(&response, 200, "handshake", "<b>");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
}

#[tokio::test]
async fn a_head_request_is_answered_where_the_provider_sends_one() {
    let head = || request(Method::HEAD, "/", &[], "");
    let trello = presets::trello(secret()).public_url("https://example.com".parse().unwrap());
    for provider in [trello, presets::intercom(secret())] {
        let response = call(provider, head()).await;
        assert_answer(&response, 200, "handshake", "");
    }
    let response = call(presets::github(secret()), head()).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()["allow"], "POST");
}

#[tokio::test]
async fn woocommerces_ping_is_answered_and_no_other_unsigned_form() {
    let woocommerce = || presets::woocommerce(secret());
    let form = |body| request(Method::POST, "/", &[], body);
    let response = call(woocommerce(), form("webhook_id=12")).await;
    assert_answer(&response, 200, "handshake", "");
    for other in ["webhook_id=", "webhook_id=12&a=b", "webhook_id=1a", ""] {
        let response = call(woocommerce(), form(other)).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{other}");
    }
    let long = format!("webhook_id={}", "1".repeat(100_000));
    let response = call(woocommerce(), form(&long)).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn zooms_validation_is_answered_with_the_encrypted_token() {
    let body = r#"{"event":"endpoint.url_validation","payload":{"plainToken":"q9ibPhGeRZ6ayx5WTrXjRw"},"event_ts":1}"#;
    let zoom = presets::zoom(secret());
    let delivery = TestDelivery::new(&zoom).body(body);
    let response = call(zoom.clone(), delivery.request()).await;
    // printf q9ibPhGeRZ6ayx5WTrXjRw | openssl dgst -sha256 -hmac "a secret"
    let expected = r#"{"encryptedToken":"e569e621e8840c5b66af0b37b07db190befa96f876a3057fc20c868f59573778","plainToken":"q9ibPhGeRZ6ayx5WTrXjRw"}"#;
    assert_answer(&response, 200, "handshake", expected);
    assert_eq!(response.headers()["content-type"], "application/json");

    for forged in [delivery.tampered(), delivery.unsigned(), delivery.expired()] {
        let response = call(zoom.clone(), forged.request()).await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    // With several secrets, the answer uses the signing secret.
    let both = idempotent_webhook::Secrets::new(Secret::new("another").unwrap()).and(secret());
    let response = call(presets::zoom(both), delivery.request()).await;
    assert_answer(&response, 200, "handshake", expected);
}

#[tokio::test]
async fn twitchs_verification_is_answered_with_its_challenge() {
    let twitch = presets::twitch(secret());
    let name = "twitch-eventsub-message-type".parse().unwrap();
    let delivery = TestDelivery::new(&twitch)
        .header(name, "webhook_callback_verification")
        .body(r#"{"challenge":"pogchamp","subscription":{}}"#);
    let response = call(twitch.clone(), delivery.request()).await;
    assert_answer(&response, 200, "handshake", "pogchamp");
    let response = call(twitch, delivery.tampered().request()).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

/// A provider that stores the secrets that it receives, and the store.
fn keeping(provider: Provider) -> (Provider, Arc<Mutex<Vec<String>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let provider = provider.secret_exchange({
        let kept = kept.clone();
        move |head, secret| {
            let text = String::from_utf8(secret.expose().to_vec()).unwrap();
            let path = head.uri.path().to_owned();
            let kept = kept.clone();
            async move {
                kept.lock().unwrap().push(format!("{path} {text}"));
                Ok(())
            }
        }
    });
    (provider, kept)
}

#[tokio::test]
async fn asanas_secret_is_kept_and_sent_back() {
    let exchange = || request(Method::POST, "/asana/7", &[("x-hook-secret", "new")], "{}");
    let (asana, kept) = keeping(presets::asana(secret()));
    let response = call_once(asana, exchange()).await;
    assert_answer(&response, 200, "handshake", "");
    assert_eq!(response.headers()["x-hook-secret"], "new");
    assert_eq!(*kept.lock().unwrap(), ["/asana/7 new"]);

    let failing = presets::asana(secret())
        .secret_exchange(|_, _| async { Err("no webhook is waiting".into()) });
    for provider in [failing, presets::asana(secret())] {
        let response = call_once(provider, exchange()).await;
        assert_answer(&response, 503, "failed", "temporarily unavailable");
        assert!(!response.headers().contains_key("x-hook-secret"));
    }
}

/// As the documentation of `secret_exchange` says, later deliveries are verified with the stored secret.
#[tokio::test]
async fn a_kept_secret_verifies_the_deliveries_that_follow() {
    let kept: Arc<Mutex<Option<Secret>>> = Arc::default();
    let secrets = TenantSecrets::new(|head| Some(head.uri.path().to_owned()), {
        let kept = kept.clone();
        move |_| {
            let secret = kept.lock().unwrap().clone();
            async { Ok(secret) }
        }
    });
    let asana = presets::asana(secrets).secret_exchange({
        let kept = kept.clone();
        move |_, secret| {
            let is_first = kept.lock().unwrap().replace(secret).is_none();
            async move { is_first.then_some(()).ok_or("it has one".into()) }
        }
    });
    let delivery = TestDelivery::new(&asana)
        .uri("/asana")
        .secret(Secret::new("new").unwrap());
    let response = call_once(asana.clone(), delivery.request()).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);

    let exchange = || request(Method::POST, "/asana", &[("x-hook-secret", "new")], "{}");
    let response = call_once(asana.clone(), exchange()).await;
    assert_answer(&response, 200, "handshake", "");

    // The request is authentic now, and gets as far as the database, which does not exist.
    let response = call_once(asana.clone(), delivery.request()).await;
    assert_answer(&response, 503, "failed", "temporarily unavailable");
    let response = call_once(asana.clone(), delivery.tampered().request()).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);

    let response = call_once(asana, exchange()).await;
    assert_answer(&response, 503, "failed", "temporarily unavailable");
}

#[tokio::test]
async fn notions_token_is_kept_if_it_signs_itself() {
    let body = r#"{"verification_token":"secret_new"}"#;
    let signed_with = |secret: &str| {
        let signer = presets::notion(Secret::new(secret).unwrap())
            .delivery_id(idempotent_webhook::Source::body_digest());
        TestDelivery::new(&signer)
            .uri("/notion")
            .body(body)
            .request()
    };
    let (notion, kept) = keeping(presets::notion(secret()));
    let response = call_once(notion.clone(), signed_with("secret_new")).await;
    assert_answer(&response, 200, "handshake", "");
    assert_eq!(*kept.lock().unwrap(), ["/notion secret_new"]);

    let response = call_once(notion, signed_with("secret_other")).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(kept.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_wrong_signature_is_answered_as_the_provider_wants_it() {
    for (provider, status) in [
        (presets::github(secret()), 401),
        (presets::gocardless(secret()), 498),
        // A 401 would be final, but the secret may have been changed at the provider before it is changed here.
        (presets::brevo(secret()), 429),
        (presets::shopware(secret()), 503),
        // Shopware checks an endpoint by sending a wrong signature.
        (
            presets::shopware(secret()).rejection_status(StatusCode::UNAUTHORIZED),
            401,
        ),
        (
            presets::github(secret()).rejection_status(StatusCode::FORBIDDEN),
            403,
        ),
    ] {
        let delivery = TestDelivery::new(&provider);
        let wrong = match provider.signs_body() {
            true => delivery.tampered(),
            false => delivery.unsigned(),
        };
        let response = call(provider.clone(), wrong.request()).await;
        assert_answer(
            &response,
            status,
            "rejected",
            "signature missing or not valid",
        );
    }
}

/// For Dropbox, two requests with the same body are two deliveries, because they may be about different changes.
#[test]
fn dropboxs_notifications_are_all_new() {
    let dropbox = presets::dropbox(secret());
    assert!(!dropbox.signs_delivery_id());
    let notification = TestDelivery::new(&dropbox).body(r#"{"list_folder":{"accounts":["a"]}}"#);
    let id = || {
        let (head, body) = notification.request::<Bytes>().into_parts();
        let verified = dropbox
            .verify(&head, &body, std::time::SystemTime::now())
            .unwrap();
        verified.delivery().unwrap().id().to_string()
    };
    assert_ne!(id(), id());
}
