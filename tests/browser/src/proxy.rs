use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use crate::Server;

/// A reverse proxy that changes only the path: the upstream gets the `Host` that the client sent,
/// and the client gets each `Location` as the upstream sent it.
pub struct Proxy {
    server: Server,
}

#[derive(Clone, Copy)]
enum Prefix {
    Strip(&'static str),
    Add(&'static str),
}

impl Proxy {
    /// Forwards a request for `/ops/x` as `/x`. Answers 404 to paths that are not below the prefix.
    pub async fn stripping(prefix: &'static str, upstream: &Server) -> Self {
        Self::start(Prefix::Strip(prefix), upstream).await
    }

    /// Forwards a request for `/x` as `/ops/x`.
    pub async fn adding(prefix: &'static str, upstream: &Server) -> Self {
        Self::start(Prefix::Add(prefix), upstream).await
    }

    async fn start(prefix: Prefix, upstream: &Server) -> Self {
        let upstream = upstream.address();
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .unwrap();
        let router = Router::new().fallback(async move |request: Request| {
            forward(&client, prefix, upstream, request).await
        });
        Self {
            server: Server::start(router).await,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn url(&self, path: &str) -> String {
        self.server.url(path)
    }
}

async fn forward(
    client: &Client,
    prefix: Prefix,
    upstream: SocketAddr,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let Some(path) = prefix.apply(head.uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut url = Url::parse(&format!("http://{upstream}{path}")).unwrap();
    url.set_query(head.uri.query());
    let answer = client
        .request(head.method, url)
        .headers(end_to_end(head.headers))
        .body(to_bytes(body, usize::MAX).await.unwrap())
        .send()
        .await;
    match answer {
        Ok(answer) => {
            let status = answer.status();
            let headers = end_to_end(answer.headers().clone());
            match answer.bytes().await {
                Ok(bytes) => (status, headers, Body::from(bytes)).into_response(),
                Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
            }
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// Removes the headers that describe the connection, or how the body is sent on it.
fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

impl Prefix {
    fn apply(self, path: &str) -> Option<String> {
        match self {
            Self::Add(prefix) => Some(format!("{prefix}{path}")),
            Self::Strip(prefix) => match path.strip_prefix(prefix)? {
                "" => Some("/".to_owned()),
                rest if rest.starts_with('/') => Some(rest.to_owned()),
                _ => None,
            },
        }
    }
}
