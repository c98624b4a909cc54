//! The common parts of the fuzz targets: requests that are read from bytes and changed, and presets with secrets that
//! sign.

#[path = "../../tests/provider/support/mod.rs"]
pub mod support;

mod change;
mod layer;
mod request;
mod sender;

use std::time::{Duration, SystemTime};

pub use change::Change;
pub use layer::is_handled;
pub use request::read_request;
pub use sender::{Sender, senders};

/// The time at which the targets sign, 2027-01-15. It is fixed, so that an input has the same result each time.
pub fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

/// The rules for a delivery id (G2), written after the guarantee and not after the code.
pub fn is_usable(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= 255 && !id.contains(char::is_control)
}
