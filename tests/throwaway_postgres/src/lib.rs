//! A PostgreSQL server that runs as long as a process. It uses the binaries on this machine and a temporary folder on
//! disk or in memory, and listens on a Unix socket in that folder.
//!
//! Nothing is left behind, even if the process is killed: a shell runs the server, and the shell's standard input is a
//! pipe from this process. When the pipe closes, the shell stops the server and removes the folder.

mod install;
mod snapshot;

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};

pub use install::find_or_install;
pub use snapshot::snapshot;

/// The superuser of the server.
const USER: &str = "postgres";

/// How long a server may take to start or to stop, on a machine with a busy disk.
const PATIENCE: Duration = Duration::from_secs(120);

/// The memory that a server may need, in bytes: for its WAL, and for the databases of the tests that run at once.
const ROOM_IN_MEMORY: u64 = 4 * 1024 * 1024 * 1024;

/// The script of the *keeper*, the shell that runs the server. It creates a cluster or copies one, starts a server, and
/// takes commands from the standard input. When the standard input closes, it stops the server and removes the folder.
const KEEPER: &str = r#"
    make() {
        if [ -n "$COPIED" ]; then
            cp -a "$COPIED" "$DIR/data"
        else
            "$BIN/initdb" --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync --pgdata "$DIR/data"
        fi
    }
    make >"$DIR/log" 2>&1 || {
        touch "$DIR/failed"
        read -r _
        cd /
        rm -rf "$DIR"
        exit 1
    }
    start() {
        "$BIN/postgres" -D "$DIR/data" -k "$DIR" -c listen_addresses= "$@" >>"$DIR/log" 2>&1 &
        server=$!
    }
    # Sends the signal repeatedly, because a server that is just starting ignores it.
    stop() {
        while kill "-$1" $server 2>/dev/null; do sleep 0.05; done
        wait $server
    }
    start "$@"
    while read -r order; do
        case $order in
            crash) stop QUIT ;;
            start) start "$@" ;;
        esac
    done
    # The data is not needed any more. After INT, a server that has just started to recover from a crash may never exit.
    stop QUIT
    cd /
    rm -rf "$DIR"
"#;

/// A server that runs as long as this value or the process lives.
pub struct ThrowawayPostgres {
    folder: PathBuf,
    keeper: Child,
}

/// What happens to commits when the machine loses power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As PostgreSQL is configured by default: a commit is on disk before it is confirmed.
    Durable,
    /// Faster, for tests that do not cut the power.
    Lossy,
}

impl ThrowawayPostgres {
    /// Starts a server. If PostgreSQL is missing, installs it as root on a Debian-family system.
    pub async fn start(durability: Durability) -> Result<Self, StartError> {
        Self::start_with(durability, []).await
    }

    /// Starts a server on a copy of the files of another server, which must have [crashed](Self::crash).
    pub async fn start_copy(&self, durability: Durability) -> Result<Self, StartError> {
        let data = self.folder.join("data").display().to_string();
        Self::start_with(durability, [("COPIED", data)]).await
    }

    /// Starts a server like [`start`](Self::start), with additional environment variables.
    pub async fn start_with(
        durability: Durability,
        environment: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self, StartError> {
        let bin = find_or_install()?;
        let folder = tempfile::Builder::new()
            .prefix("throwaway-postgres-")
            .tempdir_in(temporary_folder(durability))?;
        let owner = owner_for(folder.path())?;

        let mut keeper = as_user(Command::new("sh"), owner);
        keeper
            .args(["-c", KEEPER, "keeper"])
            .args(["-c", "max_connections=200"])
            .current_dir(folder.path())
            .env("BIN", &bin)
            .env("DIR", folder.path())
            .envs(environment)
            // With its own process group, the server does not get a Ctrl-C in the terminal.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if durability == Durability::Lossy {
            for setting in [
                "fsync=off",
                "synchronous_commit=off",
                "full_page_writes=off",
            ] {
                keeper.args(["-c", setting]);
            }
        }
        let server = Self {
            keeper: keeper.spawn()?,
            // From here on, the keeper removes the folder.
            folder: folder.keep(),
        };
        server.wait_until_ready().await?;
        Ok(server)
    }

    /// The options to connect to a database of this server as its superuser.
    pub fn options(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::new()
            .socket(&self.folder)
            .username(USER)
            .database(database)
            .disable_statement_logging()
    }

    /// The arguments for `psql` to connect.
    pub fn psql(&self) -> String {
        format!("psql -h {} -U {USER} postgres", self.folder.display())
    }

    /// Stops the server as a crash would: at once, without a checkpoint.
    pub fn crash(&self) -> io::Result<()> {
        self.order("crash")?;
        // The server removes this file last.
        let running = self.folder.join("data/postmaster.pid");
        let deadline = Instant::now() + PATIENCE;
        while running.exists() {
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Starts the server again after [`crash`](Self::crash), with the files that were on disk.
    pub async fn start_again(&self) -> Result<(), StartError> {
        self.order("start")?;
        self.wait_until_ready().await
    }

    fn order(&self, order: &str) -> io::Result<()> {
        match self.keeper.stdin.as_ref() {
            Some(mut keeper) => writeln!(keeper, "{order}"),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    async fn wait_until_ready(&self) -> Result<(), StartError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match PgConnection::connect_with(&self.options("postgres")).await {
                Ok(connection) => {
                    connection.close().await?;
                    return Ok(());
                }
                Err(_) if Instant::now() < deadline && !self.folder.join("failed").exists() => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => {
                    let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                    return Err(StartError::Server(format!("{error}\n{log}")));
                }
            }
        }
    }
}

impl Drop for ThrowawayPostgres {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // Nobody would see an error here.
        let _ = self.keeper.wait();
    }
}

/// Why the server could not be started.
#[derive(Debug)]
pub enum StartError {
    NotInstalled,
    /// The package manager failed.
    Install(String),
    /// `initdb` or the server failed.
    Server(String),
    Io(io::Error),
    Sqlx(sqlx::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => f.write_str(
                "No PostgreSQL server is installed. Install one:\n\
                 \n  Debian, Ubuntu   sudo apt-get install postgresql\
                 \n  Fedora           sudo dnf install postgresql-server\
                 \n  macOS            brew install postgresql\n\
                 \nor name a database of your own: DATABASE_URL=postgres://user@host/database",
            ),
            Self::Install(output) => write!(f, "Could not install PostgreSQL:\n{output}"),
            Self::Server(output) => write!(f, "PostgreSQL did not start:\n{output}"),
            Self::Io(error) => write!(f, "PostgreSQL could not be run: {error}"),
            Self::Sqlx(error) => write!(f, "PostgreSQL was lost again: {error}"),
        }
    }
}

impl Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<sqlx::Error> for StartError {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlx(error)
    }
}

/// Where the folder of a server is created. The path is short, because the path of a Unix socket may have at most about
/// 100 bytes. The folder is open to other users, because the server may have to run as another user.
///
/// On Linux, files that may be lost are kept in memory if there is room: a database has 300 files, and a file system on
/// a disk takes ten times as long to create them.
fn temporary_folder(durability: Durability) -> &'static Path {
    let memory = Path::new("/dev/shm");
    let has_room = || {
        let room = rustix::fs::statvfs(memory);
        room.is_ok_and(|room| room.f_bavail.saturating_mul(room.f_frsize) >= ROOM_IN_MEMORY)
    };
    match durability {
        Durability::Lossy if has_room() => memory,
        Durability::Lossy | Durability::Durable => Path::new("/tmp"),
    }
}

fn is_root() -> io::Result<bool> {
    Ok(tempfile::tempfile()?.metadata()?.uid() == 0)
}

/// PostgreSQL does not run as root. If this process is root, the folder is given to the user that runs the server.
fn owner_for(folder: &Path) -> Result<Option<(u32, u32)>, StartError> {
    if !is_root()? {
        return Ok(None);
    }
    let id = |flag: &str, user: &str| -> Option<u32> {
        let output = Command::new("id").args([flag, user]).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    let (uid, gid) = ["postgres", "nobody"]
        .iter()
        .find_map(|user| Some((id("-u", user)?, id("-g", user)?)))
        .ok_or_else(|| StartError::Server("there is no user to run it but root".into()))?;
    chown(folder, Some(uid), Some(gid))?;
    Ok(Some((uid, gid)))
}

fn as_user(mut command: Command, user: Option<(u32, u32)>) -> Command {
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}
