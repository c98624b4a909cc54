//! A headless Chromium for tests of pages, with what they are served by.
//!
//! A test starts a [`Server`], a [`Browser`] and a [`Page`], does with the page what a user
//! does, and ends with [`Page::assert_clean`] and [`Page::assert_accessible`]. What cannot be
//! done panics, and says on which page.

mod browser;
mod chromium;
mod database;
mod finding;
mod look;
mod page;
mod proxy;
mod server;
#[path = "../../../examples/throwaway_postgres/mod.rs"]
mod throwaway_postgres;
mod watch;

pub use browser::Browser;
pub use database::Database;
pub use finding::Finding;
pub use look::Look;
pub use page::Page;
pub use proxy::Proxy;
pub use server::Server;
