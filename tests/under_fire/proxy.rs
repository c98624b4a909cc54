//! A proxy between the application and Postgres. It knows where a message ends, and can inflict a
//! fault between any two messages.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Notify, OwnedRwLockWriteGuard, RwLock, mpsc, oneshot, watch};

/// One message, named as `psql` and debuggers name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub to_postgres: bool,
    pub name: String,
}

/// A fault is due: the message is held until the harm is done and somebody says how to continue.
pub struct Due {
    /// The process id of the backend, if it is known already.
    pub backend: Option<i32>,
    pub go_on: oneshot::Sender<GoOn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoOn {
    /// Forward this message and the following ones.
    Forward,
    /// Close the connection in both directions.
    Cut,
    /// Forward nothing more, but keep the connection open until the application closes it.
    Silence,
}

pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    armed: Mutex<Option<Armed>>,
    /// Notified when all connections are cut.
    cut: Notify,
    /// Locked during a silence. Each message waits for this lock.
    silence: Arc<RwLock<()>>,
}

struct Armed {
    /// The messages since [`arm`](Proxy::arm).
    seen: Vec<Message>,
    /// The index of the message before which the fault is due, counted since `arm`, and the channel
    /// that reports that it is due.
    fault: Option<(usize, mpsc::UnboundedSender<Due>)>,
}

impl Proxy {
    pub async fn start(postgres: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        tokio::spawn({
            let state = state.clone();
            async move {
                loop {
                    let (application, _) = listener.accept().await.unwrap();
                    application.set_nodelay(true).unwrap();
                    // While the server is down, the proxy refuses its clients.
                    if let Ok(postgres) = UnixStream::connect(&postgres).await {
                        tokio::spawn(relay(application, postgres, state.clone()));
                    }
                }
            }
        });
        Self { address, state }
    }

    /// The URL, for the application's environment.
    pub fn url(&self) -> String {
        format!(
            "postgres://postgres@{}/postgres?sslmode=disable",
            self.address
        )
    }

    /// Counts messages from now on, and makes the fault due before the message with this number.
    pub fn arm(&self, before: usize) -> mpsc::UnboundedReceiver<Due> {
        let (tell, due) = mpsc::unbounded_channel();
        *self.state.armed.lock().unwrap() = Some(Armed {
            seen: Vec::new(),
            fault: Some((before, tell)),
        });
        due
    }

    /// Cuts all open connections.
    pub fn cut(&self) {
        self.state.cut.notify_waiters();
    }

    /// Lets nothing through until the returned lock guard is dropped.
    pub async fn silence(&self) -> OwnedRwLockWriteGuard<()> {
        self.state.silence.clone().write_owned().await
    }

    /// The messages since the last [`arm`](Self::arm).
    pub fn seen(&self) -> Vec<Message> {
        let armed = self.state.armed.lock().unwrap();
        armed
            .as_ref()
            .map_or_else(Vec::new, |armed| armed.seen.clone())
    }
}

/// One connection through the proxy.
struct Connection {
    state: Arc<State>,
    backend: Mutex<Option<i32>>,
    silent: watch::Sender<bool>,
}

async fn relay(application: TcpStream, postgres: UnixStream, state: Arc<State>) {
    let cut = state.clone();
    let connection = Connection {
        state,
        backend: Mutex::new(None),
        silent: watch::Sender::new(false),
    };
    let (from_application, to_application) = application.into_split();
    let (from_postgres, to_postgres) = postgres.into_split();
    // When one end closes, the other end is closed.
    tokio::select! {
        () = connection.forward(from_application, to_postgres, true) => {}
        () = connection.forward(from_postgres, to_application, false) => {}
        () = cut.cut.notified() => {}
    }
}

impl Connection {
    /// Forwards message by message until the connection ends.
    async fn forward(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        to_postgres: bool,
    ) {
        // Only the very first message of a client has no type.
        let mut typed = !to_postgres;
        while let Some(message) = read_message(&mut from, typed).await {
            if !to_postgres && message[0] == b'K' {
                let pid = i32::from_be_bytes(message[5..9].try_into().unwrap());
                *self.backend.lock().unwrap() = Some(pid);
            }
            drop(self.state.silence.read().await);
            match self.before(&message, typed, to_postgres).await {
                GoOn::Forward => {}
                GoOn::Cut => return,
                GoOn::Silence => {
                    self.silent.send_replace(true);
                }
            }
            if *self.silent.borrow() {
                // Postgres must not notice the silence, so its connection stays open and nothing
                // more is read from it. The proxy still reads from the application until the
                // application closes the connection.
                if !to_postgres {
                    std::future::pending::<()>().await;
                }
            } else if to.write_all(&message).await.is_err() {
                return;
            }
            typed = true;
        }
        if !to_postgres && *self.silent.borrow() {
            std::future::pending::<()>().await;
        }
    }

    async fn before(&self, message: &[u8], typed: bool, to_postgres: bool) -> GoOn {
        let due = {
            let mut armed = self.state.armed.lock().unwrap();
            let Some(armed) = &mut *armed else {
                return GoOn::Forward;
            };
            let name = describe(message, typed, to_postgres);
            armed.seen.push(Message { to_postgres, name });
            let number = armed.seen.len() - 1;
            armed.fault.take_if(|(before, _)| *before == number)
        };
        let Some((_, tell)) = due else {
            return GoOn::Forward;
        };
        let (go_on, told) = oneshot::channel();
        let backend = *self.backend.lock().unwrap();
        tell.send(Due { backend, go_on }).ok();
        told.await.unwrap_or(GoOn::Forward)
    }
}

/// Reads a whole message, including its type and length.
async fn read_message(from: &mut (impl AsyncRead + Unpin), typed: bool) -> Option<Vec<u8>> {
    let mut message = vec![0; if typed { 5 } else { 4 }];
    from.read_exact(&mut message).await.ok()?;
    let length = message.last_chunk::<4>().copied().unwrap();
    let head = message.len();
    let rest = u32::from_be_bytes(length) as usize - 4;
    message.resize(head + rest, 0);
    from.read_exact(&mut message[head..]).await.ok()?;
    Some(message)
}

fn describe(message: &[u8], typed: bool, to_postgres: bool) -> String {
    if !typed {
        return "Startup".into();
    }
    let text = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes)
            .trim_matches('\0')
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let body = &message[5..];
    let name = match (to_postgres, message[0]) {
        (true, b'Q') => return format!("Query {}", text(body)),
        (true, b'P') => {
            let sql = body.splitn(3, |byte| *byte == 0).nth(1).unwrap_or_default();
            return format!("Parse {}", text(sql));
        }
        (true, b'B') => "Bind",
        (true, b'D') => "Describe",
        (true, b'E') => "Execute",
        (true, b'C') => "Close",
        (true, b'S') => "Sync",
        (true, b'X') => "Terminate",
        (true, b'p') => "Password",
        (false, b'C') => return format!("CommandComplete {}", text(body)),
        (false, b'S') => return format!("ParameterStatus {}", text(body)),
        (false, b'Z') => return format!("ReadyForQuery {}", text(body)),
        (false, b'1') => "ParseComplete",
        (false, b'2') => "BindComplete",
        (false, b'3') => "CloseComplete",
        (false, b'D') => "DataRow",
        (false, b'E') => "ErrorResponse",
        (false, b'K') => "BackendKeyData",
        (false, b'N') => "NoticeResponse",
        (false, b'R') => "Authentication",
        (false, b'T') => "RowDescription",
        (false, b'n') => "NoData",
        (false, b's') => "PortalSuspended",
        (false, b't') => "ParameterDescription",
        (_, other) => return format!("{:?}", char::from(other)),
    };
    name.into()
}
