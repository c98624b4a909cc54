//! A user of the dashboard.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use idempotent_webhook::dashboard::Dashboard;
use sqlx::PgPool;
use tower::ServiceExt;

#[derive(Clone)]
pub struct Browser(Router);

impl Browser {
    pub fn new(pool: PgPool) -> Self {
        Self(Dashboard::new(pool).authenticated_in_front().into_router())
    }

    /// Returns a page, and how long it took.
    pub async fn see(&self, page: &str) -> (String, Duration) {
        let request = Request::get(format!("/{page}"))
            .header("sec-fetch-site", "none")
            .body(Body::empty())
            .unwrap();
        let started = Instant::now();
        let response = self.0.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let taken = started.elapsed();
        let text = String::from_utf8_lossy(&body);
        assert_eq!(status, StatusCode::OK, "{page} after {taken:?}: {text}");
        (String::from_utf8(body.to_vec()).unwrap(), taken)
    }

    /// Posts a form. Returns the address that the answer leads to.
    pub async fn post(&self, page: &str, form: &str) -> String {
        let request = Request::post(format!("/{page}"))
            .header("sec-fetch-site", "same-origin")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(form.to_owned()))
            .unwrap();
        let response = self.0.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{page} {form}");
        response.headers()[LOCATION].to_str().unwrap().to_owned()
    }
}
