//! Which database a pool is connected to.

use sqlx::postgres::PgConnectOptions;

/// Host, port and name of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatabaseName {
    host: String,
    port: u16,
    name: String,
}

impl DatabaseName {
    pub(crate) fn of(options: &PgConnectOptions) -> Self {
        let host = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => options.get_host().to_owned(),
        };
        let name = options.get_database().unwrap_or(options.get_username());
        Self {
            host,
            port: options.get_port(),
            name: name.to_owned(),
        }
    }
}
