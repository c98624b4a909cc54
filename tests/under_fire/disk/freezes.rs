//! A disk that freezes. This library is loaded before the C library, and makes each sync wait while a certain file
//! exists. No signal ends that wait, just as no signal ends the wait for a real disk.

#![crate_type = "cdylib"]

use std::ffi::{c_int, c_long};
use std::path::Path;
use std::time::Duration;

#[cfg(target_arch = "x86_64")]
const FDATASYNC: c_long = 75;
#[cfg(target_arch = "aarch64")]
const FDATASYNC: c_long = 83;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// # Safety
///
/// There is nothing to uphold: a file that is not open is reported as an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    if let Some(frozen) = std::env::var_os("DISK_IS_FROZEN") {
        while Path::new(&frozen).exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // SAFETY: this is the system call of this name, with its only argument.
    unsafe { syscall(FDATASYNC, file) as c_int }
}
