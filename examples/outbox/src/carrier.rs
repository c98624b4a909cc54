//! The external API. This carrier remembers idempotency keys, as Stripe's API does.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;

/// The carrier's books. Clones share them.
#[derive(Clone, Default)]
pub struct Carrier(Arc<Mutex<Books>>);

#[derive(Default)]
struct Books {
    /// Every request, including requests that made no shipment.
    requests: Vec<Request>,
    /// The shipped parcels.
    shipments: Vec<Request>,
}

#[derive(Clone)]
struct Request {
    key: String,
    order: String,
}

#[derive(Deserialize)]
struct Shipment {
    order: String,
}

impl Carrier {
    pub fn router(&self) -> Router {
        Router::new()
            .route("/shipments", post(ship))
            .with_state(self.clone())
    }

    /// The idempotency keys of all requests for an order.
    pub fn keys(&self, order: &str) -> Vec<String> {
        self.with_books(|books| {
            let requests = books.requests.iter();
            requests
                .filter(|request| request.order == order)
                .map(|request| request.key.clone())
                .collect()
        })
    }

    /// How often an order was shipped.
    pub fn shipments(&self, order: &str) -> usize {
        self.with_books(|books| {
            let shipments = books.shipments.iter();
            shipments.filter(|shipped| shipped.order == order).count()
        })
    }

    fn with_books<T>(&self, f: impl FnOnce(&mut Books) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn ship(
    State(carrier): State<Carrier>,
    headers: HeaderMap,
    Json(Shipment { order }): Json<Shipment>,
) -> StatusCode {
    let key = headers.get("idempotency-key").map(|key| key.to_str());
    let Some(Ok(key)) = key else {
        return StatusCode::BAD_REQUEST;
    };
    let request = Request {
        key: key.to_owned(),
        order,
    };
    carrier.with_books(|books| {
        books.requests.push(request.clone());
        // The same key gets the same answer, but no second shipment.
        if !books.shipments.iter().any(|shipped| shipped.key == key) {
            books.shipments.push(request);
        }
    });
    StatusCode::CREATED
}
