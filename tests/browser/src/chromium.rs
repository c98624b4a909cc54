use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// How long a browser may take to start or to stop, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The names of the program in Debian, Fedora, Arch and Google's packages.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Runs the browser until the standard input closes, and removes the folder. The browser's
/// temporary files and crash reports go to the folder, too.
const KEEPER: &str = r#"
    export HOME="$DIR" TMPDIR="$DIR"
    # Only the browser writes to the standard error. When nobody reads the pipe any more, a write
    # kills the process that writes.
    exec 3>&2 2>/dev/null
    "$@" </dev/null >/dev/null 2>&3 3>&- &
    browser=$!
    exec 3>&-
    read -r _
    kill -TERM $browser
    tries=0
    while kill -0 $browser; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || kill -KILL $browser
        sleep 0.05
    done
    wait $browser
    # The children of the browser may still be writing to the folder.
    until rm -rf "$DIR"; do sleep 0.05; done
"#;

const FLAGS: [&str; 17] = [
    "--headless",
    "--remote-debugging-port=0",
    // The sandbox does not work for root. It is not needed, because all pages are our own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-default-apps",
    "--disable-component-update",
    "--disable-background-networking",
    // In a container, /dev/shm may be too small for Chromium.
    "--disable-dev-shm-usage",
    // A page that Chromium restores from the back/forward cache is not loaded again, so a test of
    // such a page would check nothing.
    "--disable-features=BackForwardCache,MediaRouter,OptimizationHints,Translate",
    // No request to another host leaves this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-proxy-server",
];

/// The processes of a browser and their folder. Nothing is left behind, even if this process is
/// killed: a shell runs the browser, and the shell's standard input is a pipe from this process.
pub struct Chromium {
    keeper: Child,
    folder: PathBuf,
    /// Receives all output on the standard error, once the last process that has it open, including
    /// the children of the browser, has ended. The mutex is only for `Sync`.
    said: Mutex<Receiver<String>>,
}

impl Chromium {
    pub fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("headless-chromium-")
            .tempdir()?;
        let mut profile = std::ffi::OsString::from("--user-data-dir=");
        profile.push(folder.path().join("profile"));
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(find()?)
            .args(FLAGS)
            .arg(profile)
            .arg("about:blank")
            .current_dir("/")
            .env("DIR", folder.path())
            // Ctrl-C in the terminal goes to this process only. The browser ends when this process
            // does.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        // From here on, the keeper removes the folder.
        let folder = folder.keep();

        let stderr = keeper.stderr.take();
        let (tell, said) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stderr) = stderr {
                // Even if reading fails, the output until then is shown.
                let _ = stderr.read_to_end(&mut bytes);
            }
            // If the browser took too long to end, nobody receives the output any more.
            let _ = tell.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Ok(Self {
            keeper,
            folder,
            said: Mutex::new(said),
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The address of the WebSocket for the DevTools protocol, once the browser listens.
    pub async fn address(&self) -> io::Result<String> {
        let file = self.folder.join("profile/DevToolsActivePort");
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let content = fs::read_to_string(&file).unwrap_or_default();
            if let Some((port, path)) = content.split_once('\n')
                && !path.is_empty()
            {
                return Ok(format!("ws://127.0.0.1:{port}{path}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the browser does not listen",
        ))
    }

    /// Ends all processes, and returns their output.
    pub fn end(&mut self) -> io::Result<String> {
        drop(self.keeper.stdin.take());
        self.keeper.wait()?;
        self.said
            .get_mut()
            .unwrap()
            .recv_timeout(PATIENCE)
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "a process is left"))
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if self.keeper.stdin.is_some()
            && let Err(error) = self.end()
        {
            eprintln!(
                "the browser in {} did not end: {error}",
                self.folder.display()
            );
        }
    }
}

/// The browser that `CHROMIUM` names, or the first installed one.
fn find() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Ok(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    NAMES
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|program| program.is_file())
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "no Chromium is installed (apt-get install chromium), and CHROMIUM names none",
            )
        })
}
