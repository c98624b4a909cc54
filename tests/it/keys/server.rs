//! A server that publishes the keys of providers. A test can rotate the keys, and make the server
//! fail in many ways.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, body::Bytes};
use futures_util::{StreamExt, stream};
use idempotent_webhook::provider::keys::{KeyClient, KeySource};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const HOST: HeaderName = HeaderName::from_static("x-asked-host");

/// How the server answers.
#[derive(Clone)]
pub enum Answering {
    /// With a set of the public keys of these private keys.
    Keys(Vec<&'static str>),
    /// With this text, regardless of the address.
    Text(String),
    /// With 500.
    Broken,
    /// With 403.
    Refusing,
    /// With a page of HTML and 200.
    Html,
    /// With a text of 10 MB that contains the keys.
    Huge,
    /// With a redirect to an address that answers with keys.
    Redirect,
    /// With keys, but only after this time.
    Slow(Duration),
    /// With keys, in two parts.
    Parts,
}

#[derive(Clone)]
pub struct KeyServer {
    address: std::net::SocketAddr,
    answering: Arc<Mutex<Answering>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl KeyServer {
    pub async fn new(answering: Answering) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            answering: Arc::new(Mutex::new(answering)),
            asked: Arc::default(),
        };
        let router = Router::new().fallback(respond).with_state(server.clone());
        tokio::spawn(async { axum::serve(listener, router).await });
        server
    }

    pub fn answer(&self, answering: Answering) {
        *self.answering.lock().unwrap() = answering;
    }

    /// The addresses of all requests so far, without their scheme.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// A source whose client fetches the keys from this server, regardless of the host in the
    /// address.
    pub fn source(&self) -> KeySource {
        let (client, address) = (reqwest::Client::new(), self.address);
        KeySource::fetched(move |request: axum::http::Request<Bytes>| {
            let client = client.clone();
            async move {
                let (mut head, body) = request.into_parts();
                let host = head.uri.host().unwrap_or_default().parse()?;
                head.headers.insert(HOST, host);
                let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
                head.uri = format!("http://{address}{path}").parse()?;
                client
                    .fetch(axum::http::Request::from_parts(head, body))
                    .await
            }
        })
    }
}

async fn respond(State(server): State<KeyServer>, request: Request) -> Response {
    let host = request.headers().get(HOST);
    let host = host.map_or("redirected", |host| host.to_str().unwrap());
    let asked = format!("{host}{}", request.uri());
    server.asked.lock().unwrap().push(asked);
    let answering = server.answering.lock().unwrap().clone();
    let keys = || set(&["first"]);
    match answering {
        Answering::Keys(names) => set(&names).into_response(),
        Answering::Text(text) => text.into_response(),
        Answering::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Answering::Refusing => StatusCode::FORBIDDEN.into_response(),
        Answering::Html => ([(CONTENT_TYPE, "text/html")], "<html>Sign in</html>").into_response(),
        Answering::Huge => format!("{}{}", keys(), " ".repeat(10_000_000)).into_response(),
        Answering::Redirect if request.uri().path() == "/moved" => keys().into_response(),
        Answering::Redirect => (StatusCode::FOUND, [(LOCATION, "/moved")]).into_response(),
        Answering::Slow(time) => {
            tokio::time::sleep(time).await;
            keys().into_response()
        }
        Answering::Parts => {
            let mut beginning = keys();
            let end = beginning.split_off(beginning.len() / 2);
            let end = stream::once(async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                end
            });
            let parts = stream::once(async { beginning }).chain(end);
            Body::from_stream(parts.map(Ok::<_, Infallible>)).into_response()
        }
    }
}

/// A JSON Web Key Set with the public keys of these private keys.
fn set(names: &[&str]) -> String {
    let keys = names.iter().map(|name| {
        let mut key: Value = serde_json::from_str(private_key(name)).unwrap();
        key.as_object_mut().unwrap().remove("d");
        key
    });
    json!({"keys": keys.collect::<Vec<_>>()}).to_string()
}

/// The private key with this name.
pub fn private_key(name: &str) -> &'static str {
    match name {
        "first" => {
            r#"{"kty":"EC","crv":"P-256","kid":"first",
                "x":"tPZfA2evyM16iei2ebq3WYDHojU0ErfzTa608mCjvY4",
                "y":"IK38WvdZS4reqzCBCmfybcmNVbkRc2JIf0yR1siyJ-o",
                "d":"5Jxrov60OBvwdU5KoRoIAR_1nwFbIIqAbrxgreVunIQ"}"#
        }
        "second" => {
            r#"{"kty":"EC","crv":"P-256","kid":"second",
                "x":"haTz3mnDRM4gdhG9O9l9S-2hN-8jR-vzq9uLkjCUJO0",
                "y":"I3WDrv5k3dHsDtDgjxleNo6hTuzVX3EXuu1JelCEyh0",
                "d":"O1iYz1-wZBA3gcM3M78ebxz8iZi_ih12DQo3ewNWsX0"}"#
        }
        // An attacker's key, which has the same key id as the provider's first key.
        "forged" => {
            r#"{"kty":"EC","crv":"P-256","kid":"first",
                "x":"B7Sx0D-jQ9iLEHZT5A-9phVc3kicyMNMxmv-AnkVwQ0",
                "y":"15vZhGbte2ojP1yvpXqm_YXW4Q15SY9IC3iNWj49_aU",
                "d":"W-tbndCBFTGOtpC0wYcsK2CcfHV6dsaig4F_EKodBq4"}"#
        }
        other => panic!("{other}"),
    }
}
