//! The text forms of the values that some presets take instead of a secret, and which texts are
//! refused.

use std::fmt::Debug;
use std::str::FromStr;
use std::time::SystemTime;

use idempotent_webhook::presets::{
    self, AppStoreApp, BraintreeKeys, CircleKeys, EbayEndpoint, FalUser, FireblocksKeys,
    LiveKitKey, PayPalWebhook, PlaidKeys, PubSub, PublicKey, SnsTopic,
};
use idempotent_webhook::provider::SecretError;
use idempotent_webhook::provider::signature::BasicCredentials;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, Secrets};

const ARN: &str = "arn:aws:sns:us-east-1:123456789012:orders";
const RSA: &str = include_str!("../keys/rsa.pem");
const P256: &str = include_str!("../keys/p256.pem");
const JWK: &str = r#"{"kty":"EC","crv":"P-256","kid":"1",
    "x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}"#;

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn text_form(value: impl Into<Secret>) -> String {
    String::from_utf8(value.into().expose().to_vec()).unwrap()
}

/// Asserts that a value is written as this text, and that the text reads as the same value.
fn assert_text_form<T>(value: Result<T, SecretError>, text: &str)
where
    T: Into<Secret> + FromStr<Err = SecretError>,
{
    assert_eq!(text_form(value.unwrap()), text);
    assert_eq!(text_form(text.parse::<T>().unwrap()), text);
}

#[test]
fn each_value_has_one_text_form() {
    assert_text_form(SnsTopic::new(ARN), ARN);
    assert_text_form(
        PubSub::new("a@b.test", "https://c.test/d"),
        "a@b.test https://c.test/d",
    );
    assert_text_form(AppStoreApp::new("com.example.app"), "com.example.app");
    let sandbox = AppStoreApp::new("com.example.app").map(AppStoreApp::sandbox);
    assert_text_form(sandbox, "com.example.app Sandbox");
    assert_text_form(PayPalWebhook::new("1AB"), "1AB");
    let with_key = PayPalWebhook::new("1AB").and_then(|webhook| webhook.public_key(RSA));
    assert_text_form(with_key, &format!("1AB:{RSA}"));
    let address = "https://api.circle.com/v2/notifications/publicKey";
    assert_text_form(CircleKeys::fetched(address), address);
    assert_text_form(CircleKeys::given(P256), P256);
    for (keys, text) in [
        (FireblocksKeys::us(), "us"),
        (FireblocksKeys::eu(), "eu"),
        (FireblocksKeys::eu2(), "eu2"),
        (FireblocksKeys::sandbox(), "sandbox"),
    ] {
        assert_text_form(Ok(keys), text);
    }
    assert_text_form(FireblocksKeys::given(RSA), RSA);
    assert_text_form(EbayEndpoint::new(secret("to-k_en1")), "to-k_en1");
    let sandbox = EbayEndpoint::new(secret("to-k_en1")).map(EbayEndpoint::sandbox);
    assert_text_form(sandbox, "sandbox:to-k_en1");
    assert_text_form(PlaidKeys::production("id", secret("s")), "id:s");
    assert_text_form(PlaidKeys::sandbox("id", secret("s")), "sandbox:id:s");
    assert_text_form(PlaidKeys::given(JWK), JWK);
    assert_text_form(
        BraintreeKeys::new("public", secret("pri:vate")),
        "public:pri:vate",
    );
    assert_text_form(LiveKitKey::new("API", secret("s")), "API:s");
    assert_text_form(FalUser::new("github|12345678"), "github|12345678");
    assert_text_form(
        BasicCredentials::new("user", secret("pass:word")),
        "user:pass:word",
    );
    assert_text_form(PublicKey::new(RSA), RSA);
}

#[test]
fn bundle_ids_are_of_production_unless_they_say_otherwise() {
    let app: AppStoreApp = "com.example.app Production".parse().unwrap();
    assert_eq!(text_form(app), "com.example.app");
}

fn assert_refused<T: FromStr<Err = SecretError> + Debug>(texts: &[&str]) {
    for text in texts {
        assert!(text.parse::<T>().is_err(), "{text}");
    }
}

#[test]
fn what_no_provider_could_match_is_refused() {
    assert_refused::<SnsTopic>(&[
        "",
        "orders",
        "arn:aws:sqs:us-east-1:123456789012:orders",
        "arn:aws:sns::123456789012:orders",
        "arn:aws:sns:us-east-1:123456789012:orders:9be54b4c-8e5d-4a4e-9d4f-0d0e3f5f5f5f",
        "arn:aws-iso:sns:us-iso-east-1:123456789012:orders",
    ]);
    assert_refused::<PubSub>(&[
        "",
        "a@b.test",
        "a@b.test ",
        "account https://c.test",
        "a@b.test c d",
    ]);
    assert_refused::<AppStoreApp>(&["", "com.example.app Xcode", " Sandbox"]);
    assert_refused::<PayPalWebhook>(&["", ":", "1AB:", "1AB:key", "1|AB"]);
    assert_refused::<CircleKeys>(&[
        "",
        "key",
        RSA,
        "https://api.circle.com.evil.test/v2/notifications/publicKey",
        "https://api.circle.com/v2/notifications/publicKey?x=",
    ]);
    assert_refused::<FireblocksKeys>(&["", "asia", "US", P256]);
    assert_refused::<EbayEndpoint>(&["", "sandbox:", "a token", "production:token"]);
    assert_refused::<PlaidKeys>(&["", "id", "id:", ":secret", "a:b:c", "sandbox:id", "{}", "{"]);
    for pairs in [
        assert_refused::<BraintreeKeys>,
        assert_refused::<LiveKitKey>,
    ] {
        pairs(&["", "a", "a:", ":b", " a:b"]);
    }
    assert_refused::<BasicCredentials>(&["", "user", "user:", ":password"]);
    assert_refused::<FalUser>(&["", "a b"]);
    assert_refused::<PublicKey>(&["", " key"]);
    // A part cannot contain the separator of the parts.
    assert!(LiveKitKey::new("a:b", secret("c")).is_err());
    assert!(PlaidKeys::production("a", secret("b:c")).is_err());
    assert!(LiveKitKey::new("a", Secret::new([0xff]).unwrap()).is_err());
}

/// A secret that was read from a file may end with a line break. No signature would match such a
/// secret, and nobody would know why.
#[test]
fn a_line_break_at_the_end_is_refused() {
    assert_refused::<SnsTopic>(&[&format!("{ARN}\n")]);
    assert_refused::<PubSub>(&["a@b.test https://c.test/d\n"]);
    assert_refused::<AppStoreApp>(&["com.example.app\n", "com.example.app Sandbox\n"]);
    assert_refused::<PayPalWebhook>(&["1AB\n"]);
    assert_refused::<CircleKeys>(&["https://api.circle.com/v2/notifications/publicKey\n"]);
    assert_refused::<FireblocksKeys>(&["us\n"]);
    assert_refused::<EbayEndpoint>(&["to-k_en1\n", "sandbox:to-k_en1\n"]);
    assert_refused::<PlaidKeys>(&["id:s\n", "sandbox:id:s\n"]);
    assert_refused::<BraintreeKeys>(&["public:private\n"]);
    assert_refused::<LiveKitKey>(&["API:s\n"]);
    assert_refused::<FalUser>(&["github|12345678\n"]);
    assert_refused::<BasicCredentials>(&["user:password\n"]);
    // A text that is refused is also refused as a value.
    let spaced = Secret::exact("s\n").unwrap();
    assert!(LiveKitKey::new("API", spaced).is_err());
}

#[test]
fn nothing_secret_is_shown() {
    let shown = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        EbayEndpoint::new(secret("hunter2")),
        PlaidKeys::sandbox("id", secret("hunter2")),
        BraintreeKeys::new("public", secret("hunter2")),
        LiveKitKey::new("API", secret("hunter2")),
        BasicCredentials::new("user", secret("hunter2")),
    );
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(shown.matches("Secret(redacted)").count(), 5, "{shown}");
}

fn key(name: &str) -> LiveKitKey {
    LiveKitKey::new(name, secret("a secret")).unwrap()
}

#[test]
fn several_values_are_valid_at_once() {
    let both = presets::livekit(Secrets::new(key("new")).and(key("old")));
    let listed = presets::livekit(Secrets::try_from(vec![key("new"), key("old")]).unwrap());
    for (signer, is_valid) in [("new", true), ("old", true), ("other", false)] {
        let delivery = TestDelivery::new(&presets::livekit(key("any"))).secret(key(signer));
        let request = delivery.request::<bytes::Bytes>();
        let (head, body) = request.into_parts();
        for provider in [&both, &listed] {
            let verified = provider.verify(&head, &body, SystemTime::now());
            assert_eq!(verified.is_ok(), is_valid, "{signer}");
        }
        let with = both.verify_with(&Secrets::new(key("old")), &head, &body, SystemTime::now());
        assert_eq!(with.is_ok(), signer == "old", "{signer}");
    }
}

#[test]
fn a_preset_by_name_takes_the_text_form() {
    let preset = presets::by_name("livekit").unwrap();
    assert!(preset.provider(secret("API:s")).check_secrets().is_ok());
    assert!(
        preset
            .provider(Secret::from(key("API")))
            .check_secrets()
            .is_ok()
    );
    let wrong = preset.provider(secret("s")).check_secrets().unwrap_err();
    let expected = "the webhook secret cannot be used: LiveKit needs `<API key>:<API secret>`, \
                    without white space around them";
    assert_eq!(wrong.to_string(), expected);
}
