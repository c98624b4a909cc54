//! The name of a layer's endpoint, which no other layer of the process may have on the same database.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::PgPool;

use crate::transaction::database_name::DatabaseName;

/// The endpoint names of all existing layers. This is a static, because two layers may have nothing else in common.
static NAMES: Mutex<Vec<Arc<Name>>> = Mutex::new(Vec::new());

#[derive(Debug, PartialEq)]
struct Name {
    endpoint: Arc<str>,
    database: DatabaseName,
}

/// Holds an endpoint name for as long as a layer, one of its clones or one of its services exists.
#[derive(Debug)]
pub(crate) struct EndpointName(Arc<Name>);

impl EndpointName {
    /// Registers the name of a layer's endpoint, and warns if another layer already has it.
    pub(crate) fn hold(endpoint: &Arc<str>, pool: &PgPool) -> Self {
        let name = Arc::new(Name {
            endpoint: endpoint.clone(),
            database: DatabaseName::of(&pool.connect_options()),
        });
        let mut names = names();
        let is_shared = names.contains(&name);
        names.push(name.clone());
        drop(names);
        if is_shared {
            tracing::warn!(
                endpoint = &**endpoint,
                "two webhook layers have the same endpoint, so each takes the other's deliveries for duplicates: give \
                 each route an endpoint of its own, or share a clone of one layer"
            );
        }
        Self(name)
    }
}

impl Drop for EndpointName {
    fn drop(&mut self) {
        names().retain(|name| !Arc::ptr_eq(name, &self.0));
    }
}

/// The names of the layers of this process on the database of the pool.
pub(crate) fn served(pool: &PgPool) -> Vec<String> {
    let database = DatabaseName::of(&pool.connect_options());
    let names = names();
    let names = names.iter().filter(|name| name.database == database);
    names.map(|name| name.endpoint.to_string()).collect()
}

fn names() -> MutexGuard<'static, Vec<Arc<Name>>> {
    // Nothing panics while it holds the lock.
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}
