//! Payloads from public repositories. `tests/corpora/payloads.json` lists them. If the folder that `WEBHOOK_CORPORA`
//! names contains these repositories, the tests compare what the presets read from the payloads with the expected
//! values.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::provider::Verified;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, VerifiedWebhook};
use serde::Deserialize;
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{a_secret_of, verify, with_test_keys};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    /// The name of the repository on GitHub.
    repository: String,
    commit: String,
    licence: String,
    preset: String,
    payloads: Vec<Payload>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    path: String,
    /// The headers with the values that are not in the body.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The event type, and its action after a dot.
    event: Option<String>,
    /// The delivery id, if it is in the body.
    id: Option<String>,
}

fn corpora() -> Vec<Corpus> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpora/payloads.json");
    serde_json::from_str(&fs::read_to_string(list).unwrap()).unwrap()
}

/// The names of the events of a preset.
pub fn event_names(preset: &Preset) -> impl Iterator<Item = String> {
    let corpora = corpora().into_iter();
    let of_preset = corpora.filter(|corpus| corpus.preset == preset.name());
    of_preset
        .flat_map(|corpus| corpus.payloads)
        .filter_map(|payload| payload.event)
}

fn provider(preset: &Preset) -> Provider {
    with_test_keys(preset.provider(a_secret_of(preset)))
        .public_url("https://example.com".parse().unwrap())
}

impl Payload {
    /// A request with this body, signed at the current time.
    fn request(&self, provider: &Provider, body: &[u8]) -> Request<Bytes> {
        let delivery = TestDelivery::new(provider).body(body).at(SystemTime::now());
        let headers = self.headers.iter();
        let delivery = headers.fold(delivery, |delivery, (name, value)| {
            delivery.header(name.parse().unwrap(), value)
        });
        delivery.request()
    }

    /// How the result of the preset differs from the expected one, if it does.
    async fn difference(&self, provider: &Provider, body: &[u8]) -> Option<String> {
        let delivery = match verify(provider, self.request(provider, body)) {
            Ok(Verified::Delivery(delivery)) => delivery,
            other => return Some(format!("{other:?}")),
        };
        if self
            .id
            .as_ref()
            .is_some_and(|id| id != delivery.id().as_str())
        {
            return Some(format!("the delivery id {}", delivery.id()));
        }
        let event = self.event.as_deref()?;
        let layer = VerifiedWebhook::new("corpora", provider.clone()).only([event]);
        let handler = service_fn(async |_: Request<Full<Bytes>>| {
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        });
        let request = self.request(provider, body).map(Full::from);
        let response = layer.layer(handler).oneshot(request).await.unwrap();
        let outcome = &response.headers()["x-webhook-outcome"];
        (outcome != "verified").then(|| format!("not {event}, but {:?}", delivery.event_type()))
    }
}

#[test]
fn each_payload_is_listed_once_with_what_is_expected_of_it() {
    let mut seen = BTreeSet::new();
    for corpus in corpora() {
        let name = &corpus.repository;
        presets::by_name(&corpus.preset).unwrap();
        assert_eq!(corpus.commit.len(), 40, "{name}");
        assert!(!corpus.licence.is_empty(), "{name}");
        for payload in corpus.payloads {
            let path = format!("{name}/{}", payload.path);
            assert!(payload.event.is_some() || payload.id.is_some(), "{path}");
            assert!(seen.insert(path.clone()), "{path}");
        }
    }
}

#[tokio::test]
async fn the_presets_make_of_each_payload_what_is_listed() {
    let Some(folder) = std::env::var_os("WEBHOOK_CORPORA").map(PathBuf::from) else {
        return;
    };
    let (mut agree, mut differ) = (0, Vec::new());
    for corpus in corpora() {
        let checkout = folder.join(&corpus.repository);
        if !checkout.is_dir() {
            continue;
        }
        let provider = provider(presets::by_name(&corpus.preset).unwrap());
        for payload in &corpus.payloads {
            let body = fs::read(checkout.join(&payload.path)).unwrap();
            match payload.difference(&provider, &body).await {
                None => agree += 1,
                Some(what) => {
                    differ.push(format!("{} {}: {what}", corpus.repository, payload.path))
                }
            }
        }
    }
    assert_eq!(differ, Vec::<String>::new());
    assert!(
        agree > 0,
        "{} has none of the repositories",
        folder.display()
    );
}
