//! Opening the database file: one writer, any number of readers, and repair after a killed writer.
//!
//! redb runs with its feature `experimental-multiprocess`, in the mode `SingleWriter`. A command opens the file for
//! writing. Servers hold read-only handles and poll the file. A server never writes rows. So an import that crashes
//! or fills the disk cannot harm it. The special cases are in `store/file/open.rs`:
//!
//! - **New databases.** A new database is a file without a name until its first commit. A refused or killed command
//!   leaves no file.
//! - **Killed writers.** Only a writer may repair the file. So a reader that finds it unrepaired opens it once for
//!   writing, but writes nothing. A user without that permission gets a message that names a user who has it.
//! - **Second writers.** A second writer waits. After its timeout it names the first one, from a note next to the file
//!   (`store/file/notes.rs`). redb owns the lock.
//! - **Links.** Writers resolve symbolic links first (`store/file/metadata.rs`). So locks, notes and drafts are next to
//!   the real file. A reader opens the path as given, so it notices a link that changes its target. So does a server
//!   when it reads the publisher's note, or stores the use of keys.
//! - **Newer formats.** Opening for writing marks the file. So medfeed reads the format first, and leaves a newer file
//!   untouched.
//! - **Replaced files.** `restore`, `compact` and `upgrade` replace the file by rename, while they hold the lock of
//!   the old one. A writer compares device and inode with the path after it has the lock, before the commit, and after
//!   it. A reader does so at each poll. It also compares length and time of the last change (`FileStamp`). A copy
//!   written into the same file can have the same numbers in redb's header. Then redb answers from its cache. So after
//!   each write to the file, the reader reads the last commit with a new handle.
//! - **Quick repair.** Commits are written so that reopening after a kill takes milliseconds.
//!
//! An import prepares without the lock: it reads its files, merges and lints the rows with a snapshot, and asks. Then
//! it takes the lock. If the last commit has another seq or lineage than the snapshot, it merges and lints the rows
//! that it has read once more, under the lock. Seqs alone do not show this: after a restore the same seqs come again.
//! If the result is refused, or its warnings are not those that were accepted, the import releases the lock and begins
//! again with a new snapshot. So nobody is asked while the lock is held. Other commands, such as `key revoke`, wait
//! while an import writes.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redb::{
    Builder, ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction,
    ReadableDatabase, TableError, WriteTransaction,
};

use super::draft::{self, Draft};
use super::metadata::{FileIdentity, FileStamp, resolve};
use super::notes::WriterNote;
use crate::store::error::{is_full, opaque_debug};
use crate::store::format::meta::{ReplicaMark, Version, find_mark};
use crate::store::format::tables::META;
use crate::store::{CommitPoint, Result, Snapshot, StoreError, panics};

/// The size of redb's page cache, in bytes. The kernel keeps the file's pages too, so a larger cache makes no command
/// faster.
const PAGE_CACHE_BYTES: usize = 4 << 20;
/// The pause between attempts of a waiting writer.
const RETRY_EVERY: Duration = Duration::from_millis(25);

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_concurrency_mode(ConcurrencyMode::SingleWriter);
    builder.set_cache_size(PAGE_CACHE_BYTES);
    builder
}

/// A function that opens a database in a file, or creates it in an empty one.
pub type OpenDatabase = fn(&Builder, File) -> Result<Database, DatabaseError>;

thread_local! {
    static OPEN_DATABASE: Cell<OpenDatabase> = const { Cell::new(Builder::create_file) };
}

/// Sets how this thread opens databases for writing. Tests of power losses observe the writes.
pub fn open_databases_by(open: OpenDatabase) {
    OPEN_DATABASE.set(open);
}

/// The files that a command accepts, and how long it waits for another writer.
#[derive(Clone, Copy, Default)]
pub(crate) struct OpenOptions {
    pub wait: Duration,
    /// A replica. Its reader holds its lock as long as it runs.
    pub replica: bool,
    /// A file of an older release, whose rows lack fields of this program.
    pub older: bool,
}

impl OpenOptions {
    pub const ANY_CURRENT: OpenOptions = OpenOptions {
        wait: Duration::ZERO,
        replica: true,
        older: false,
    };
    pub const ANY: OpenOptions = OpenOptions {
        older: true,
        ..OpenOptions::ANY_CURRENT
    };

    /// Fails unless the file is accepted.
    fn check(self, path: &Path, database: &impl ReadableDatabase) -> Result<Version> {
        let transaction = database.begin_read()?;
        let not_ours = || StoreError::NotADatabase {
            path: path.to_owned(),
            reason: "it is a redb file of another program".to_owned(),
        };
        let meta = match transaction.open_table(META) {
            Ok(meta) => meta,
            Err(TableError::Storage(error)) => return Err(error.into()),
            Err(_) => return Err(not_ours()),
        };
        let version = Version::read(&meta)?.ok_or_else(not_ours)?;
        version.check(path, self.older)?;
        if !self.replica {
            refuse_replica(path, &version, &transaction)?;
        }
        Ok(version)
    }
}

/// Repeats an attempt until it returns something. After `wait`, fails and names the process that writes.
pub(super) fn retry<T>(
    path: &Path,
    wait: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + wait;
    loop {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
        if Instant::now() >= deadline {
            return Err(StoreError::Busy {
                path: path.to_owned(),
                holder: WriterNote::read(&resolve(path)),
            });
        }
        std::thread::sleep(RETRY_EVERY);
    }
}

/// Fails if the file is a replica.
pub(crate) fn refuse_replica(
    path: &Path,
    version: &Version,
    transaction: &ReadTransaction,
) -> Result<()> {
    let Some(ReplicaMark { url, .. }) = find_mark(transaction)? else {
        return Ok(());
    };
    let path = path.to_owned();
    Err(if version.is_current() {
        StoreError::IsReplica { path, url }
    } else {
        StoreError::OlderReplica { path, url }
    })
}

/// The writer of a database. Other processes cannot write while it exists.
pub struct Writer {
    note: Option<WriterNote>,
    /// `None` only after it was closed.
    database: Option<Database>,
    /// The number of panics that this thread had caught when the database was opened.
    panics: u64,
    pub(crate) identity: FileIdentity,
    pub(super) path: PathBuf,
    /// A new database gets its name with its first commit, and is removed without one. Its folder is locked until then.
    /// Other processes that create the same database wait for this lock.
    pub(super) unnamed: Mutex<Option<(Draft, File)>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Commits are durable already. `medfeed check` finds the damage.
        let _ = self.close_database();
    }
}

impl Writer {
    const OPEN: &str = "the database is open as long as its writer exists";

    /// Whether the file is new, and gets its name with its first commit.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.unnamed.lock().is_some()
    }

    /// Opens an existing database for writing. Waits up to `wait` for another writer, then removes abandoned drafts.
    pub fn open(path: &Path, wait: Duration) -> Result<Writer> {
        Writer::open_with(
            path,
            OpenOptions {
                wait,
                ..OpenOptions::default()
            },
        )
    }

    /// Opens a database like [`Writer::open`], but accepts replicas. For commands that hold the lock and change no row.
    pub fn open_any(path: &Path, wait: Duration) -> Result<Writer> {
        Writer::open_with(
            path,
            OpenOptions {
                wait,
                ..OpenOptions::ANY_CURRENT
            },
        )
    }

    pub(crate) fn open_with(path: &Path, options: OpenOptions) -> Result<Writer> {
        let path = resolve(path);
        let mut writer = Writer::open_file(&path, options)?;
        draft::sweep(&path);
        writer.note = Some(WriterNote::create(&path));
        Ok(writer)
    }

    /// Opens a file without a note: a draft, or a file whose links are followed. Checks it before it waits for the
    /// lock, unless it needs repair or is being repaired.
    pub(crate) fn open_file(path: &Path, options: OpenOptions) -> Result<Writer> {
        // Opening for writing marks the file. So detect newer formats by reading first.
        match builder().open_read_only(path) {
            Ok(found) => drop(options.check(path, &found)?),
            Err(DatabaseError::RepairAborted | DatabaseError::DatabaseAlreadyOpen) => {}
            Err(error) => return Err(open_error(path, error)),
        }
        retry(path, options.wait, || {
            while let Some(writer) = Writer::try_open(path)? {
                // A rename may have replaced the file between opening and locking.
                if writer.identity.is_of(path) {
                    options.check(path, writer.database())?;
                    return Ok(Some(writer));
                }
            }
            Ok(None)
        })
    }

    /// Opens a file without a check; `None` if another process has opened it. In an empty file, creates a database.
    pub(super) fn try_open(path: &Path) -> Result<Option<Writer>> {
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(io_error(path))?;
        let identity = FileIdentity::of_file(&file).map_err(io_error(path))?;
        let database = match OPEN_DATABASE.get()(&builder(), file) {
            Ok(database) => Some(database),
            Err(DatabaseError::DatabaseAlreadyOpen) => return Ok(None),
            Err(error) => return Err(open_error(path, error)),
        };
        let path = path.to_owned();
        let unnamed = Mutex::new(None);
        let panics = panics::caught_count();
        Ok(Some(Writer {
            note: None,
            database,
            panics,
            identity,
            path,
            unnamed,
        }))
    }

    /// Closes the file. Fails if it is damaged. Commits are durable before.
    pub fn close(mut self) -> Result<()> {
        self.close_database()
    }

    /// Closes the database. That writes to the file, which is not allowed after a panic. So it is leaked then.
    fn close_database(&mut self) -> Result<()> {
        // The note goes first: as soon as the lock is free, it belongs to the next writer.
        self.note = None;
        let database = self.database.take();
        if self.panics != panics::caught_count() {
            std::mem::forget(database);
            return Ok(());
        }
        panics::guard(|| {
            drop(database);
            Ok(())
        })
    }

    fn database(&self) -> &Database {
        self.database.as_ref().expect(Writer::OPEN)
    }

    pub(crate) fn database_mut(&mut self) -> &mut Database {
        self.database.as_mut().expect(Writer::OPEN)
    }

    pub(crate) fn path(&self) -> PathBuf {
        let unnamed = self.unnamed.lock();
        unnamed
            .as_ref()
            .map_or(self.path.as_path(), |(file, _)| file.path())
            .to_owned()
    }

    /// The writer after its draft was renamed to `path`.
    pub(crate) fn moved_to(mut self, path: &Path) -> Writer {
        path.clone_into(&mut self.path);
        self.note = Some(WriterNote::create(path));
        self
    }

    /// Gives a new database its name. Other processes that create the same database may continue then.
    pub(crate) fn persist(&self) -> Result<()> {
        let unnamed = self.unnamed.lock().take();
        unnamed.map_or(Ok(()), |(file, _creating)| file.persist_new())
    }

    /// Begins a write transaction of redb.
    pub(crate) fn begin_raw(&self) -> Result<WriteTransaction> {
        let mut transaction = self.database().begin_write()?;
        // Reopening after a kill takes milliseconds, instead of reading the whole file.
        transaction.set_quick_repair(true);
        Ok(transaction)
    }

    pub(crate) fn begin_read(&self) -> Result<ReadTransaction> {
        Ok(self.database().begin_read()?)
    }

    /// Fails if another file has replaced this one at its path.
    pub(crate) fn check_not_replaced(&self) -> Result<()> {
        self.identity.check(&self.path())
    }

    /// Opens the state of the last commit.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::open(&self.begin_read()?)
    }
}

/// A database file that is open for reading.
pub(crate) struct ReadFile {
    pub path: PathBuf,
    database: ReadOnlyDatabase,
    pub stamp: FileStamp,
    pub version: Version,
}

impl ReadFile {
    /// Opens a file. If a killed writer left it unrepaired, opens it once for writing to repair it.
    pub fn open(path: &Path, options: OpenOptions) -> Result<ReadFile> {
        const REPAIR_WAIT: Duration = Duration::from_secs(5);
        retry(path, REPAIR_WAIT, || {
            let stamp = FileStamp::of_path(path).map_err(io_error(path))?;
            let found = match builder().open_read_only(path) {
                Err(DatabaseError::RepairAborted) => open_repaired(path)?,
                Err(DatabaseError::DatabaseAlreadyOpen) => None,
                found => Some(found.map_err(|error| open_error(path, error))?),
            };
            let Some(database) = found.filter(|_| stamp.identity.is_of(path)) else {
                return Ok(None);
            };
            let version = options.check(path, &database)?;
            Ok(Some(ReadFile {
                path: path.to_owned(),
                database,
                stamp,
                version,
            }))
        })
    }

    pub fn begin_read(&self) -> Result<ReadTransaction> {
        Ok(self.database.begin_read()?)
    }
}

/// A read-only handle. It notices new commits, and a file that replaces this one at its path.
pub struct Reader {
    pub(crate) file: ReadFile,
    newest: Arc<Snapshot>,
}

impl Reader {
    /// Opens the database for reading. If a killed writer left it unrepaired, opens it once for writing to repair it.
    pub fn open(path: &Path) -> Result<Reader> {
        let file = ReadFile::open(path, OpenOptions::ANY_CURRENT)?;
        let newest = Arc::new(Snapshot::open(&file.begin_read()?)?.with_witnesses());
        Ok(Reader { file, newest })
    }

    /// Fails if the file is a replica.
    pub fn refuse_replica(&self) -> Result<()> {
        refuse_replica(
            &resolve(&self.file.path),
            &self.file.version,
            &self.file.begin_read()?,
        )
    }

    /// The state at the last poll.
    pub fn newest(&self) -> &Arc<Snapshot> {
        &self.newest
    }

    /// Polls for new commits, or another file at the path. Returns the same `Arc` if nothing is new.
    pub fn refresh(&mut self) -> Result<&Arc<Snapshot>> {
        panics::guard(|| self.poll())?;
        Ok(&self.newest)
    }

    /// Continues with another handle.
    fn replace_file(&mut self, file: ReadFile) -> Result<()> {
        self.newest = Arc::new(Snapshot::open_after(&self.newest, &file.begin_read()?)?);
        self.file = file;
        Ok(())
    }

    fn poll(&mut self) -> Result<()> {
        let path = &self.file.path;
        let stamp = FileStamp::of_path(path).map_err(io_error(path))?;
        if stamp.identity != self.file.stamp.identity {
            return self.replace_file(ReadFile::open(path, OpenOptions::ANY_CURRENT)?);
        }
        // A copy written into this file can have the same numbers in redb's header. Then redb reads old pages from its
        // cache. A new handle has none.
        if (stamp != self.file.stamp || stamp.is_recent())
            && let Ok(database) = builder().open_read_only(path)
        {
            let is_same = Snapshot::read_commit(&database.begin_read()?)? == self.newest.commit();
            if !is_same || stamp.len != self.file.stamp.len {
                let version = OpenOptions::ANY_CURRENT.check(path, &database)?;
                return self.replace_file(ReadFile {
                    path: path.clone(),
                    database,
                    stamp,
                    version,
                });
            }
            self.file.stamp = stamp;
            return Ok(());
        }
        let transaction = self.file.begin_read()?;
        if Snapshot::read_commit(&transaction)? != self.newest.commit() {
            self.newest = Arc::new(Snapshot::open_after(&self.newest, &transaction)?);
        }
        Ok(())
    }
}

/// Reads the mark and the last commit of a replica's file without its lock. An unrepaired file is repaired first. Its
/// rows may lack fields of this program.
pub fn read_replica(path: &Path) -> Result<(ReplicaMark, CommitPoint)> {
    panics::guard(|| {
        let transaction = ReadFile::open(path, OpenOptions::ANY)?.begin_read()?;
        let mark = find_mark(&transaction)?.ok_or_else(|| StoreError::NotAReplica {
            path: path.to_owned(),
        })?;
        Ok((mark, Snapshot::read_commit(&transaction)?))
    })
}

pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| {
        let path = draft::display_path(path);
        match source.kind() {
            // For a dangling link, name its target.
            io::ErrorKind::NotFound if path.is_symlink() => StoreError::NotFound {
                path: resolve(&path),
            },
            io::ErrorKind::NotFound => StoreError::NotFound { path },
            _ => StoreError::Io { path, source },
        }
    }
}

fn open_error(path: &Path, error: DatabaseError) -> StoreError {
    use redb::StorageError;
    let is_empty = path.metadata().is_ok_and(|found| found.len() == 0);
    let reason = match error {
        DatabaseError::Storage(_) if is_empty => "it is empty".to_owned(),
        DatabaseError::Storage(StorageError::Io(source))
            if source.kind() == io::ErrorKind::InvalidData =>
        {
            let text = source.to_string();
            if text.contains("magic number") {
                "it is another kind of file".to_owned()
            } else {
                text
            }
        }
        DatabaseError::Storage(StorageError::Io(source))
            if source.kind() == io::ErrorKind::UnexpectedEof =>
        {
            "it is cut short".to_owned()
        }
        DatabaseError::Storage(StorageError::Io(source)) if !is_full(&source) => {
            return io_error(path)(source);
        }
        DatabaseError::Storage(StorageError::Corrupted(reason)) if reason.contains("truncated") => {
            "it is cut short".to_owned()
        }
        DatabaseError::Storage(StorageError::Corrupted(reason)) => reason,
        DatabaseError::UpgradeRequired(version) => {
            format!("it is in the old redb format {version}")
        }
        other => return StoreError::from_redb(other.into()),
    };
    StoreError::NotADatabase {
        path: draft::display_path(path),
        reason,
    }
}

/// An error of repairing a file. Without write permission, it says who can repair it.
fn repair_error(path: &Path, error: DatabaseError) -> StoreError {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match error {
        DatabaseError::Storage(redb::StorageError::Io(source))
            if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem) =>
        {
            StoreError::NeedsRepair {
                path: resolve(path),
                source,
            }
        }
        error => open_error(path, error),
    }
}

/// Repairs a file that a killed writer left, and opens it for reading; `None` if another process repairs it.
///
/// A repair that finds no room on the disk ends with the last commit in memory, and leaves the file as it was. So the
/// file is opened for reading while the repaired one is open.
fn open_repaired(path: &Path) -> Result<Option<ReadOnlyDatabase>> {
    let _repaired = match builder().open(path) {
        Ok(database) => database,
        Err(DatabaseError::DatabaseAlreadyOpen) => return Ok(None),
        Err(error) => return Err(repair_error(path, error)),
    };
    match builder().open_read_only(path) {
        Ok(database) => Ok(Some(database)),
        Err(error) => Err(open_error(path, error)),
    }
}

opaque_debug!(Writer, Reader);
