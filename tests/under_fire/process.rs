//! Application processes, and a supervisor's part in their lives.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::application::{CONNECTIONS, DATABASE, HISTORY, PATIENCE, RECONCILES, RECOVERS};
use crate::history::Recorder;

/// An application that is started again after it was killed.
pub struct Process {
    database: String,
    recorder: Recorder,
    connections: u32,
    patience: Duration,
    recovers: bool,
    reconciles: Option<String>,
    running: Mutex<Option<Running>>,
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
            reconciles: None,
            running: Mutex::new(None),
        }
    }

    /// One that runs kept deliveries again.
    pub fn recovering(self) -> Self {
        Self {
            recovers: true,
            ..self
        }
    }

    /// One that reconciles the lists of these providers.
    pub fn reconciling(self, apis: String) -> Self {
        Self {
            reconciles: Some(apis),
            ..self
        }
    }

    /// Where it serves; starts it if it does not run.
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
        let mut command = Command::new(std::env::current_exe().unwrap());
        if self.recovers {
            command.env(RECOVERS, "yes");
        }
        if let Some(apis) = &self.reconciles {
            command.env(RECONCILES, apis);
        }
        let mut child = command
            .env(DATABASE, &self.database)
            .env(HISTORY, self.recorder.path())
            .env(CONNECTIONS, self.connections.to_string())
            .env(PATIENCE, self.patience.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It panics when told to.
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

    /// SIGKILL, and waits until it is gone.
    pub async fn kill(&self) {
        if let Some(process) = &mut *self.running.lock().await {
            process.child.kill().await.unwrap();
        }
    }
}
