//! Finds the programs of PostgreSQL, or installs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{StartError, is_root};

/// The folder with `initdb` and `postgres`. If they are missing, installs them as root on a Debian-family system.
pub fn find_or_install() -> Result<PathBuf, StartError> {
    if let Some(bin) = find() {
        return Ok(bin);
    }
    if !(is_root()? && Path::new("/etc/debian_version").exists()) {
        return Err(StartError::NotInstalled);
    }
    eprintln!("No PostgreSQL server found: installing the package postgresql with apt-get.");
    for arguments in [
        &["update"][..],
        &["install", "--yes", "--no-install-recommends", "postgresql"][..],
    ] {
        let output = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            // Keeps the package from starting its own server, if services are not managed by systemd.
            .env("RUNLEVEL", "1")
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            return Err(StartError::Install(
                String::from_utf8_lossy(&said).into_owned(),
            ));
        }
    }
    find().ok_or(StartError::NotInstalled)
}

/// The folder with `initdb` and `postgres`.
fn find() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect::<Vec<_>>())
        .unwrap_or_default();
    let by_pg_config = Command::new("pg_config")
        .arg("--bindir")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map(|line| PathBuf::from(line.trim()));
    let by_package = [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/opt/homebrew/opt", "postgresql"),
        ("/usr/local/opt", "postgresql"),
    ]
    .into_iter()
    .flat_map(|(parent, prefix)| versions(Path::new(parent), prefix));
    on_path
        .into_iter()
        .chain(by_pg_config)
        .chain(by_package)
        .find(|folder| {
            ["initdb", "postgres"]
                .iter()
                .all(|program| folder.join(program).is_file())
        })
        // If `postgres` on the PATH is a link, this is the folder of the program itself, where the other programs are.
        .map(|folder| {
            fs::canonicalize(folder.join("postgres"))
                .ok()
                .and_then(|program| Some(program.parent()?.to_owned()))
                .unwrap_or(folder)
        })
}

/// The `bin` folders in those subfolders of `parent` that start with `prefix`, newest version first.
fn versions(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let rest = name.strip_prefix(prefix)?.trim_start_matches('@');
            let version = if rest.is_empty() {
                u32::MAX
            } else {
                rest.parse().ok()?
            };
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, bin)| bin).collect()
}
