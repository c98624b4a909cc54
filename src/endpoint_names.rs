//! The names of endpoints, and which of them are in use in this process.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

use crate::delivery::check_text;

/// The layers that exist in this process.
static IN_USE: Mutex<Vec<InUse>> = Mutex::new(Vec::new());

struct InUse {
    /// Shared by all clones of a layer, and gone with the last of them.
    name: Weak<str>,
    database: Arc<PgConnectOptions>,
}

/// Checks the name of a new layer and notes that it is in use.
///
/// # Panics
///
/// If it cannot be part of a key.
#[expect(clippy::panic, reason = "documented at `IdempotentWebhook::new`")]
pub(crate) fn register(name: &Arc<str>, pool: &PgPool) {
    if let Err(fault) = check_text(name) {
        panic!("not a usable endpoint name: {name:?} is {fault}");
    }
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.retain(|layer| layer.name.strong_count() > 0);
    let database = pool.connect_options();
    let is_shared = in_use.iter().any(|layer| {
        layer.name.upgrade().is_some_and(|other| other == *name)
            && is_same_database(&layer.database, &database)
    });
    if is_shared {
        tracing::warn!(
            endpoint = &**name,
            "two webhook layers of this process have the same endpoint: they take each other's \
             deliveries for duplicates; give each route an endpoint of its own, or share a clone \
             of one layer"
        );
    }
    in_use.push(InUse {
        name: Arc::downgrade(name),
        database,
    });
}

pub(crate) fn is_same_database(one: &PgConnectOptions, other: &PgConnectOptions) -> bool {
    one.get_host() == other.get_host()
        && one.get_port() == other.get_port()
        && one.get_socket() == other.get_socket()
        && one.get_database() == other.get_database()
}
