//! A headless Chromium for tests of pages, with a server for them.
//!
//! A test starts a [`Server`], a [`Browser`] and a [`Page`], uses the page as a user does, and ends
//! with [`Page::assert_clean`] and [`Page::assert_accessible`]. If an action is not possible, the
//! method panics with the address of the page.
//!
//! ```no_run
//! use browser::{Browser, Look, Server};
//! # async fn test(router: axum::Router) {
//! let server = Server::start(router).await;
//! let browser = Browser::start().await;
//! let mut page = browser.page(Look { dark: true, width: 360, ..Look::default() }).await;
//! assert_eq!(page.goto(&server.url("/")).await, 200);
//! page.fill("[name=endpoint]", "stripe").await;
//! page.press("Enter").await;
//! assert_eq!(page.wait_for_navigation().await, 200);
//! assert!(page.text().await.contains("stripe"));
//! assert!(!page.has_horizontal_overflow().await);
//! page.assert_accessible().await;
//! page.assert_clean().await;
//! # }
//! ```

mod browser;
mod chromium;
mod database;
mod finding;
mod look;
mod page;
mod proxy;
mod server;
mod watch;

pub use browser::Browser;
pub use database::Database;
pub use finding::Finding;
pub use look::Look;
pub use page::Page;
pub use proxy::Proxy;
pub use server::Server;
