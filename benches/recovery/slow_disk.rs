//! Makes each sync of a file take longer, as on a network disk.
//!
//!     rustc --edition 2024 --crate-type cdylib -O benches/recovery/slow_disk.rs -o /tmp/slow_disk.so
//!     SYNC_MICROSECONDS=1000 LD_PRELOAD=/tmp/slow_disk.so cargo bench --bench recovery

use std::ffi::c_int;
use std::sync::LazyLock;
use std::time::Duration;

unsafe extern "C" {
    fn fsync(file: c_int) -> c_int;
}

static LONGER: LazyLock<Duration> = LazyLock::new(|| {
    let micros = std::env::var("SYNC_MICROSECONDS").ok();
    Duration::from_micros(micros.and_then(|micros| micros.parse().ok()).unwrap_or(0))
});

/// Replaces the system's function that Postgres uses to make a commit durable.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(file: c_int) -> c_int {
    std::thread::sleep(*LONGER);
    // SAFETY: the system checks the file number, so any number is allowed.
    unsafe { fsync(file) }
}
