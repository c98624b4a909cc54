//! The faults that can happen between two messages of the application and Postgres.

use tokio::process::Command;

use crate::process::Process;
use crate::proxy::{Due, GoOn};
use crate::server::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is cut. If the next message is from Postgres, its answer is lost.
    Cut,
    /// Nothing gets through any more, and nobody is notified.
    Silence,
    /// The application is killed with SIGKILL.
    KillApplication,
    /// An administrator ends the backend.
    TerminateBackend,
    /// The backend is killed with SIGKILL, and Postgres recovers as after a crash.
    KillBackend,
    /// Postgres is stopped in immediate mode and started again.
    RestartPostgres,
}

pub const FAULTS: [Fault; 6] = [
    Fault::Cut,
    Fault::Silence,
    Fault::KillApplication,
    Fault::TerminateBackend,
    Fault::KillBackend,
    Fault::RestartPostgres,
];

impl Fault {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Silence => "silence",
            Self::KillApplication => "kill app",
            Self::TerminateBackend => "end backend",
            Self::KillBackend => "kill backend",
            Self::RestartPostgres => "restart db",
        }
    }

    /// Inflicts the fault, as soon as there is a backend to harm.
    pub async fn inflict(self, due: Due, process: &Process, server: &Server) -> bool {
        let mut inflicted = true;
        let go_on = match (self, due.backend) {
            (Self::Cut, _) => GoOn::Cut,
            (Self::Silence, _) => GoOn::Silence,
            (Self::KillApplication, _) => {
                process.kill().await;
                GoOn::Cut
            }
            (Self::RestartPostgres, _) => {
                server.restart().await;
                GoOn::Forward
            }
            (Self::TerminateBackend, Some(backend)) => {
                server.terminate(backend).await;
                GoOn::Forward
            }
            (Self::KillBackend, Some(backend)) => {
                let kill = Command::new("kill")
                    .args(["-KILL", &backend.to_string()])
                    .status();
                assert!(kill.await.unwrap().success());
                GoOn::Forward
            }
            (Self::TerminateBackend | Self::KillBackend, None) => {
                inflicted = false;
                GoOn::Forward
            }
        };
        due.go_on.send(go_on).ok();
        inflicted
    }
}
