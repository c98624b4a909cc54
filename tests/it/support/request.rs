use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::{HeaderName, Request};
use idempotent_webhook::provider::signature::Hmac;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret, Source, presets};

pub const SECRET: &str = "whsec_test_secret";

pub fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

/// The time in Unix seconds.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// A minimal Stripe event.
pub fn stripe_event(id: &str) -> String {
    format!(r#"{{"id":"{id}","object":"event","type":"invoice.paid"}}"#)
}

/// A GitHub delivery to which the test can add an id, an event type and so on.
pub fn github_delivery() -> TestDelivery {
    TestDelivery::new(&presets::github(secret()))
}

/// A Stripe delivery whose body contains the id.
pub fn stripe_delivery(body: impl Into<Vec<u8>>) -> TestDelivery {
    TestDelivery::new(&presets::stripe(secret())).body(body.into())
}

/// A request signed as Stripe signs at `time`, whose body contains the id.
pub fn stripe(body: impl Into<Vec<u8>>, time: u64) -> Request<Body> {
    let time = UNIX_EPOCH + Duration::from_secs(time);
    stripe_delivery(body).at(time).request()
}

/// A request signed as GitHub signs.
pub fn github(id: &str, body: impl Into<Vec<u8>>) -> Request<Body> {
    github_delivery()
        .id(id)
        .event_type("push")
        .body(body.into())
        .request()
}

/// A request signed as GitHub signs, as the bytes on the wire. Its length header may differ from the body's length.
pub fn wire(id: &str, body: &str, content_length: usize) -> String {
    let mut wire = "POST / HTTP/1.1\r\nHost: localhost\r\n".to_owned();
    for (name, value) in github(id, body).headers() {
        wire += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    wire + &format!("Content-Length: {content_length}\r\n\r\n{body}")
}

/// A request signed as Shopify signs.
pub fn shopify(id: &str, body: impl Into<Vec<u8>>) -> Request<Body> {
    TestDelivery::new(&presets::shopify(secret()))
        .id(id)
        .event_type("orders/create")
        .body(body.into())
        .request()
}

/// A provider whose delivery id comes from this source. It signs as GitHub signs.
pub fn acme(delivery_id: Source) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature-256")).prefix("sha256=");
    Provider::custom("acme")
        .signature(scheme, secret())
        .delivery_id(delivery_id)
}
