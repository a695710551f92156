//! A PostgreSQL server of the tests' own, in a temporary folder.

use std::error::Error;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use postgres::{Client, NoTls};
use tempfile::TempDir;

use super::site::{Process, SOON, wait_until};

/// The superuser. Without a password by the socket, with one by TCP.
pub const USER: &str = "tester";

/// Its password.
pub const PASSWORD: &str = "a pass:word";

/// A server. It listens on a socket in its folder and on 127.0.0.1, there with TLS.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    program: PathBuf,
    user: Option<u32>,
    pub port: u16,
    process: Mutex<Process>,
}

impl Cluster {
    /// A server that all tests share that run at the same time. `None`, with a message, if none can be started.
    pub fn shared() -> Option<Arc<Cluster>> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Cluster::start()?);
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// A server for one test.
    pub fn start() -> Option<Cluster> {
        let Some(programs) = find_programs() else {
            eprintln!("left out: there is no PostgreSQL; install postgresql");
            return None;
        };
        let started = Cluster::run_in_new_folder(&programs);
        started
            .inspect_err(|why| eprintln!("left out: PostgreSQL cannot be run here: {why}"))
            .ok()
    }

    /// Starts a server in a folder of its own. Returns an error if the machine cannot run it.
    fn run_in_new_folder(programs: &Path) -> Result<Cluster, Box<dyn Error>> {
        // PostgreSQL refuses to run as root.
        let is_root = rustix::process::geteuid().is_root();
        let user = if is_root {
            Some(plain_user().ok_or("there is no user `nobody`")?)
        } else {
            None
        };
        let folder = tempfile::Builder::new().prefix("medfeed-pg-").tempdir()?;
        let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let files = [
            ("cert.pem", pair.cert.pem()),
            ("key.pem", pair.signing_key.serialize_pem()),
            ("password", PASSWORD.to_owned()),
        ];
        for (name, content) in files {
            let file = folder.path().join(name);
            fs::write(&file, content)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
            chown(&file, user, user)?;
        }
        chown(folder.path(), user, user)?;
        let made = as_user(&programs.join("initdb"), user)
            .args(
                "--auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C --no-sync"
                    .split(' '),
            )
            .args(["-U", USER, "--pwfile=password", "-D", "data"])
            .current_dir(folder.path())
            .output()?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into());
        }
        let program = programs.join("postgres");
        // Another process may take the free port first.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port();
            if let Some(process) = run(&program, user, folder.path(), port) {
                return Ok(Cluster {
                    folder,
                    program,
                    user,
                    port,
                    process: Mutex::new(process),
                });
            }
        }
        Err(fs::read_to_string(folder.path().join("log"))?.into())
    }

    /// Creates an empty database. Returns its name.
    pub fn database(&self) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("d{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.client("postgres")
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .unwrap();
        name
    }

    /// The URL of a copy in a database, by the socket.
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgres:///{database}?host={}&port={}&user={USER}",
            self.folder.path().display(),
            self.port
        )
    }

    /// The file of the server's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// A connection to a database.
    pub fn client(&self, database: &str) -> Client {
        Client::connect(&self.url(database), NoTls).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Stops the server, and disconnects all clients.
    pub fn stop(&self) {
        let mut process = self.process.lock().unwrap();
        process.signal("INT");
        assert!(process.ended_within(SOON).is_some(), "the server stops");
    }

    /// Starts it again.
    pub fn start_again(&self) {
        let started = run(&self.program, self.user, self.folder.path(), self.port);
        *self.process.lock().unwrap() = started.expect("the server starts again");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let process = self.process.get_mut();
        let process = process.unwrap_or_else(PoisonError::into_inner);
        if process.ended_within(std::time::Duration::ZERO).is_none() {
            // Ends at once, with all of its processes. After a kill they would remain for a while.
            process.signal("QUIT");
            process.ended_within(SOON);
        }
    }
}

/// Starts a server and waits until it accepts connections; `None` if it ends by itself.
fn run(program: &Path, user: Option<u32>, folder: &Path, port: u16) -> Option<Process> {
    let log = fs::File::create(folder.join("log")).unwrap();
    let mut command = as_user(program, user);
    command
        .current_dir(folder)
        .args(["-D", "data", "-p", &port.to_string(), "-k"])
        .arg(folder);
    for setting in words![
        "listen_addresses=127.0.0.1" "fsync=off" "ssl=on" "ssl_cert_file=../cert.pem" "ssl_key_file=../key.pem"
        "autovacuum=off"
    ] {
        command.args(["-c", setting]);
    }
    let mut process = Process::spawn(command.stdout(Stdio::null()).stderr(log));
    let url = format!(
        "postgres:///postgres?host={}&port={port}&user={USER}",
        folder.display()
    );
    wait_until("PostgreSQL takes connections", SOON, || {
        let has_ended = process.ended_within(std::time::Duration::ZERO).is_some();
        (has_ended || Client::connect(&url, NoTls).is_ok()).then_some(!has_ended)
    })
    .then_some(process)
}

fn as_user(program: &Path, user: Option<u32>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env_remove("PGDATA");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command
}

/// The folder of `postgres` and `initdb`: Debian keeps them apart from other programs, by version.
fn find_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter();
    let versions = versions.flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// The user that runs the server instead of root.
fn plain_user() -> Option<u32> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    fields
        .into_iter()
        .find(|fields| fields[0] == "nobody")?
        .get(2)?
        .parse()
        .ok()
}
