//! A disk that freezes.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

/// The disk of a server. It freezes while a file exists.
pub struct Disk(TempDir);

impl Disk {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        // The user that runs the server needs access.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/under_fire/disk/freezes.rs"
        );
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let compiled = Command::new(rustc)
            .args(["--edition=2024", "-o", "freezes.so", source])
            .current_dir(folder.path())
            .status();
        assert!(compiled.unwrap().success());
        Self(folder)
    }

    /// The environment variables that a server on this disk needs.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let path = |name| self.0.path().join(name).display().to_string();
        [
            ("LD_PRELOAD", path("freezes.so")),
            ("DISK_IS_FROZEN", path("frozen")),
        ]
    }

    pub fn freeze(&self) {
        File::create(self.0.path().join("frozen")).unwrap();
    }

    pub fn thaw(&self) {
        fs::remove_file(self.0.path().join("frozen")).unwrap();
    }
}
