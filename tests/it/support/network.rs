//! A network between an application and its database, which fails when the test says so.

use sqlx::postgres::PgConnectOptions;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;

use super::database::Database;

/// The state of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Up,
    /// Nothing arrives any more, and neither side notices until the state changes.
    Silent,
    /// Each connection is closed, and so is each new connection.
    Refusing,
}

pub struct Network(watch::Sender<Link>);

impl Network {
    /// A network that is up, and options for a pool that uses it.
    pub async fn of(database: &Database) -> (Self, PgConnectOptions) {
        let (sender, link) = watch::channel(Link::Up);
        let relay = move |client, server| relay(client, server, link.clone());
        (Self(sender), database.options_through(relay).await)
    }

    pub fn set(&self, link: Link) {
        self.0.send_replace(link);
    }
}

async fn relay(mut client: TcpStream, mut server: UnixStream, mut link: watch::Receiver<Link>) {
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = async { link.wait_for(|link| *link != Link::Up).await.is_ok() } => {
            let _ = link.wait_for(|link| *link != Link::Silent).await;
        }
    }
}
