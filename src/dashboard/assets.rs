//! The embedded style, script and icon, served under names that contain their hashes.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};

use crate::provider::digest::sha256_of;

/// A file, and the name under which it is served.
pub(super) struct Asset {
    pub(super) name: String,
    content_type: &'static str,
    content: &'static str,
}

pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("assets/style.css");
    Asset::new("style", "css", "text/css; charset=utf-8", content)
});

pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("assets/script.js");
    Asset::new("script", "js", "text/javascript; charset=utf-8", content)
});

pub(super) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("assets/icon.svg");
    Asset::new("icon", "svg", "image/svg+xml", content)
});

impl Asset {
    fn new(stem: &str, extension: &str, content_type: &'static str, content: &'static str) -> Self {
        let mut hash = hex::encode(sha256_of([content.as_bytes()]));
        hash.truncate(12);
        Self {
            name: format!("{stem}-{hash}.{extension}"),
            content_type,
            content,
        }
    }

    /// The asset with this name, if there is one.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        [&*STYLE, &*SCRIPT, &*ICON]
            .into_iter()
            .find(|asset| asset.name == name)
    }

    /// Browsers may cache the file without a limit, because the content under a name never changes.
    pub(super) fn response(&self) -> Response {
        let mut response = Response::new(Body::from(self.content));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        let for_ever = HeaderValue::from_static("private, max-age=31536000, immutable");
        headers.insert(CACHE_CONTROL, for_ever);
        response
    }
}
