//! Application processes, and how a supervisor starts, stops and kills them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::application::{
    CONNECTIONS, DATABASE, GRACE, HISTORY, HOOK_TIME, IS_OLD, PATIENCE, PRUNES, RECONCILES,
    RECOVERS, REHEARSES, TOLD,
};
use crate::history::Recorder;

/// How long a process may take to stop. Its handlers finish within a few seconds.
pub const STOP_TIME: Duration = Duration::from_secs(60);

/// An application. If its process was killed, the next call of `address` starts it again.
pub struct Process {
    database: String,
    recorder: Recorder,
    connections: u32,
    patience: Duration,
    recovers: bool,
    rehearses: bool,
    reconciles: Option<Reconciled>,
    prunes: bool,
    is_old: bool,
    tells: Option<Tells>,
    starts: AtomicU32,
    running: Mutex<Option<Running>>,
}

struct Tells {
    file: PathBuf,
    time: Duration,
}

struct Reconciled {
    apis: String,
    grace: Duration,
}

struct Running {
    child: Child,
    address: SocketAddr,
}

impl Process {
    pub fn new(
        database: String,
        recorder: &Recorder,
        connections: u32,
        patience: Duration,
    ) -> Self {
        Self {
            database,
            recorder: recorder.clone(),
            connections,
            patience,
            recovers: false,
            rehearses: false,
            reconciles: None,
            prunes: false,
            is_old: false,
            tells: None,
            starts: AtomicU32::new(0),
            running: Mutex::new(None),
        }
    }

    /// A process that runs kept deliveries again.
    pub fn recovering(self) -> Self {
        Self {
            recovers: true,
            ..self
        }
    }

    /// A process that only runs rehearsals.
    pub fn rehearsing(self) -> Self {
        Self {
            rehearses: true,
            ..self
        }
    }

    /// A process that reconciles the lists of these providers. An event is reconciled once it is as old as `grace`.
    pub fn reconciling(self, apis: String, grace: Duration) -> Self {
        Self {
            reconciles: Some(Reconciled { apis, grace }),
            ..self
        }
    }

    /// A process that deletes what providers do not send again.
    pub fn pruning(self) -> Self {
        Self {
            prunes: true,
            ..self
        }
    }

    /// A process with hooks. Each hook writes its report to a file, and then takes this much time.
    pub fn telling(self, file: PathBuf, time: Duration) -> Self {
        Self {
            tells: Some(Tells { file, time }),
            ..self
        }
    }

    /// A process of an old version, which lacks a handler that the next version has.
    pub fn of_old_version(self) -> Self {
        Self {
            is_old: true,
            ..self
        }
    }

    /// How often it was started.
    pub fn starts(&self) -> u32 {
        self.starts.load(Ordering::Relaxed)
    }

    /// The address of the process. Starts it if it is not running.
    pub async fn address(&self) -> SocketAddr {
        let mut running = self.running.lock().await;
        if let Some(process) = &mut *running
            && process.child.try_wait().unwrap().is_none()
        {
            return process.address;
        }
        let started = self.start().await;
        let address = started.address;
        *running = Some(started);
        address
    }

    async fn start(&self) -> Running {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let mut command = Command::new(std::env::current_exe().unwrap());
        if self.recovers {
            command.env(RECOVERS, "yes");
        }
        if self.rehearses {
            command.env(REHEARSES, "yes");
        }
        if let Some(Reconciled { apis, grace }) = &self.reconciles {
            command.env(RECONCILES, apis);
            command.env(GRACE, grace.as_secs().to_string());
        }
        if self.prunes {
            command.env(PRUNES, "yes");
        }
        if self.is_old {
            command.env(IS_OLD, "yes");
        }
        if let Some(Tells { file, time }) = &self.tells {
            command.env(TOLD, file);
            command.env(HOOK_TIME, time.as_millis().to_string());
        }
        let mut child = command
            .env(DATABASE, &self.database)
            .env(HISTORY, self.recorder.path())
            .env(CONNECTIONS, self.connections.to_string())
            .env(PATIENCE, self.patience.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The application panics when a delivery says so.
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.next_line().await.unwrap().expect("it serves");
        Running {
            child,
            address: address.parse().unwrap(),
        }
    }

    /// Sends SIGKILL, and waits until the process is gone.
    pub async fn kill(&self) {
        if let Some(process) = &mut *self.running.lock().await {
            process.child.kill().await.unwrap();
        }
    }

    /// Starts another process in its place, asks the old one to stop, and waits until it has stopped.
    pub async fn deploy(&self) {
        let new = self.start().await;
        let old = self.running.lock().await.replace(new);
        if let Some(old) = old {
            assert!(old.stop(STOP_TIME).await, "it stops when it is told to");
        }
    }

    /// Asks the process to stop. If it has not stopped after this time, kills it, as an orchestrator does. Returns
    /// whether it stopped by itself.
    pub async fn terminate(&self, grace: Duration) -> bool {
        let running = self.running.lock().await.take();
        running.unwrap().stop(grace).await
    }

    /// Stops the process for a while, like a machine that swaps or is being moved.
    pub async fn freeze(&self, time: Duration) {
        self.stand_still().await;
        tokio::time::sleep(time).await;
        self.go_on().await;
    }

    /// Sends SIGSTOP.
    pub async fn stand_still(&self) {
        send("-STOP", self.id().await).await;
    }

    /// Sends SIGCONT.
    pub async fn go_on(&self) {
        send("-CONT", self.id().await).await;
    }

    /// The memory that the process uses, in bytes.
    pub async fn memory(&self) -> Option<u64> {
        let process = self.id().await?;
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = resident.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kilobytes * 1024)
    }

    async fn id(&self) -> Option<u32> {
        self.running.lock().await.as_ref()?.child.id()
    }
}

impl Running {
    async fn stop(mut self, grace: Duration) -> bool {
        // `wait` would close the standard input of the process, and the process would take that for the end of its
        // parent.
        let _input = self.child.stdin.take();
        send("-TERM", self.child.id()).await;
        let Ok(stopped) = tokio::time::timeout(grace, self.child.wait()).await else {
            self.child.kill().await.unwrap();
            return false;
        };
        let status = stopped.unwrap();
        assert!(status.success(), "{status}");
        true
    }
}

/// Sends a signal to a child process that nobody has waited for yet, so its process id is still valid.
async fn send(signal: &str, process: Option<u32>) {
    let Some(process) = process else { return };
    let kill = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(kill.await.unwrap().success());
}
