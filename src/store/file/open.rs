//! Opening the database file: one writer, any number of followers, and repair after a killed writer.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redb::{
    Builder, ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, TableError,
    WriteTransaction,
};

use crate::store::file::backend::open_database;
use crate::store::file::draft::{self, Draft};
use crate::store::file::links::{folder_of, resolve};
use crate::store::file::metadata::{FileIdentity, FileStamp};
use crate::store::file::open_error::{io_error, is_full, open_error, repair_error};
use crate::store::file::writer_note::WriterNote;
use crate::store::format::replica::{ReplicaMark, find_mark};
use crate::store::format::secret;
use crate::store::format::tables::{self, META, META_FIELDS, META_SCHEMA, META_SECRET, SCHEMA};
use crate::store::format::version::{Version, known_fields};
use crate::store::panics;
use crate::store::{CommitPoint, Snapshot, StoreError};

/// The size of redb's page cache, in bytes. The kernel keeps the file's pages too, so a larger cache makes no command
/// faster.
const PAGE_CACHE_BYTES: usize = 4 << 20;
/// The pause between attempts of a waiting writer.
pub(super) const RETRY_EVERY: Duration = Duration::from_millis(25);

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_concurrency_mode(ConcurrencyMode::SingleWriter);
    builder.set_cache_size(PAGE_CACHE_BYTES);
    builder
}

/// The writer of a database. Other processes cannot write while it exists.
pub struct Writer {
    // Dropped first, because the note belongs to the next writer as soon as the lock is free.
    _note: Option<WriterNote>,
    database: Engine,
    identity: FileIdentity,
    location: Mutex<FileLocation>,
}

/// An open redb database. Closing it writes to the file, which is not allowed after a panic. So it is leaked then.
struct Engine {
    /// `None` only while this is dropped.
    database: Option<Database>,
    /// The number of panics that this thread had caught when the database was opened.
    panics: u64,
}

impl Engine {
    const PRESENT: &str = "it is taken only when this is dropped";

    fn new(database: Database) -> Engine {
        Engine { database: Some(database), panics: panics::caught_count() }
    }
}

impl std::ops::Deref for Engine {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.database.as_ref().expect(Engine::PRESENT)
    }
}

impl std::ops::DerefMut for Engine {
    fn deref_mut(&mut self) -> &mut Database {
        self.database.as_mut().expect(Engine::PRESENT)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let database = self.database.take();
        if self.panics == panics::caught_count() {
            panics::close(|| drop(database));
        } else {
            std::mem::forget(database);
        }
    }
}

/// A check of a file before it is opened for writing.
type FileCheck = fn(&Path, &ReadOnlyDatabase) -> Result<(), StoreError>;

#[derive(Debug)]
enum FileLocation {
    Named(PathBuf),
    /// A new database. It gets its name with its first commit, and is removed without one.
    Draft {
        draft: Draft,
        name: PathBuf,
        /// The locked folder. Other processes that create the same database wait for this lock.
        creating: File,
    },
}

impl FileLocation {
    fn path(&self) -> &Path {
        match self {
            FileLocation::Named(path) => path,
            FileLocation::Draft { draft, .. } => draft.path(),
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("location", &self.location).finish_non_exhaustive()
    }
}

impl Writer {
    /// Opens an existing database for writing. Waits up to `wait` for another writer, then removes abandoned drafts.
    pub fn open(path: &Path, wait: Duration) -> Result<Writer, StoreError> {
        // Don't wait for the lock of a replica: its follower holds it as long as it runs.
        let check: FileCheck = |path, found| refuse_replica(path, &found.begin_read()?);
        let writer = Writer::open_checked(path, wait, check)?;
        refuse_replica(&writer.path(), &writer.begin_read()?)?;
        Ok(writer)
    }

    /// Opens a database like [`Writer::open`], but accepts replicas. For commands that hold the lock and change no row.
    pub fn open_any(path: &Path, wait: Duration) -> Result<Writer, StoreError> {
        Writer::open_checked(path, wait, |_, _| Ok(()))
    }

    fn open_checked(path: &Path, wait: Duration, check: FileCheck) -> Result<Writer, StoreError> {
        let path = resolve(path);
        let writer = Writer::open_file(&path, wait, check)?;
        draft::sweep(&path);
        Ok(Writer { _note: Some(WriterNote::create(&path)), ..writer })
    }

    pub(in crate::store) fn replica_mark(&self) -> Result<Option<ReplicaMark>, StoreError> {
        find_mark(&self.begin_read()?)
    }

    pub(in crate::store) fn path(&self) -> PathBuf {
        self.lock_location().path().to_owned()
    }

    pub(in crate::store) fn file_bytes(&self) -> Result<u64, StoreError> {
        let path = self.path();
        std::fs::metadata(&path).map(|found| found.len()).map_err(|error| io_error(&path, error))
    }

    /// The writer after its draft was renamed to `path`.
    pub(in crate::store) fn moved_to(self, path: &Path) -> Writer {
        let location = Mutex::new(FileLocation::Named(path.to_owned()));
        Writer { location, _note: Some(WriterNote::create(path)), ..self }
    }

    /// Opens a draft. No other process can open it.
    pub(in crate::store) fn open_draft(path: &Path) -> Result<Writer, StoreError> {
        Writer::open_file(path, Duration::ZERO, |_, _| Ok(()))
    }

    /// Runs `check` before it waits for the lock, unless the file needs repair or is being repaired.
    fn open_file(path: &Path, wait: Duration, check: FileCheck) -> Result<Writer, StoreError> {
        let deadline = Instant::now() + wait;
        // Opening for writing marks the file. So detect newer formats by reading first.
        match open_follower(path) {
            Ok(found) => {
                check_version(path, &found)?;
                check(path, &found)?;
            }
            Err(DatabaseError::RepairAborted | DatabaseError::DatabaseAlreadyOpen) => {}
            Err(error) => return Err(open_error(path, error)),
        }
        loop {
            let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| io_error(path, error))?;
            let identity = FileIdentity::of_file(&file).map_err(|error| io_error(path, error))?;
            match open_database(&builder(), file) {
                // A rename may have replaced the file between opening and locking.
                Ok(database) if FileIdentity::of_path(path).is_ok_and(|now| now == identity) => {
                    check_version(path, &database)?;
                    let location = Mutex::new(FileLocation::Named(path.to_owned()));
                    return Ok(Writer { database: Engine::new(database), identity, location, _note: None });
                }
                Ok(_) => {}
                Err(DatabaseError::DatabaseAlreadyOpen) => {
                    if Instant::now() >= deadline {
                        let holder = WriterNote::read(path);
                        return Err(StoreError::Busy { path: path.to_owned(), holder });
                    }
                }
                Err(error) => return Err(open_error(path, error)),
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }

    /// Opens a database for writing, or creates it. A new one gets its name with its first commit, even an empty one.
    /// So a refused or killed command leaves no file. The target of a dangling link is created.
    pub fn open_or_create(path: &Path, wait: Duration) -> Result<Writer, StoreError> {
        let deadline = Instant::now() + wait;
        let path = &resolve(path);
        let folder = folder_of(path);
        let creating = File::open(folder).map_err(|source| StoreError::Io { path: folder.to_owned(), source })?;
        let created_meanwhile = loop {
            if path.exists() {
                break true;
            }
            match creating.try_lock() {
                Ok(()) => break path.exists(),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(RETRY_EVERY),
                Err(TryLockError::WouldBlock) => {
                    let holder = "another process, which creates it".to_owned();
                    return Err(StoreError::Busy { path: path.to_owned(), holder });
                }
                // If folders cannot be locked, the first process creates the database, and the others fail.
                Err(TryLockError::Error(_)) => break false,
            }
        };
        if created_meanwhile {
            return Writer::open(path, deadline.saturating_duration_since(Instant::now()));
        }
        draft::sweep(path);
        let draft = create_draft(path)?;
        let writer = Writer::open_draft(draft.path())?;
        let location = FileLocation::Draft { draft, name: path.to_owned(), creating };
        Ok(Writer { location: Mutex::new(location), ..writer })
    }

    /// Gives a new database its name.
    pub(in crate::store) fn persist(&self) -> Result<(), StoreError> {
        let mut location = self.lock_location();
        let FileLocation::Draft { name, .. } = &*location else { return Ok(()) };
        let named = FileLocation::Named(name.clone());
        let FileLocation::Draft { draft, name, creating } = std::mem::replace(&mut *location, named) else {
            return Ok(());
        };
        draft.persist_noclobber(&name).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                StoreError::Replaced { path: name.clone() }
            } else {
                io_error(&name, error)
            }
        })?;
        // Other processes that create the same database may continue now.
        drop(creating);
        Ok(())
    }

    fn lock_location(&self) -> MutexGuard<'_, FileLocation> {
        self.location.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a write transaction of redb.
    pub(in crate::store) fn begin_raw(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.database.begin_write()?;
        // Reopening after a kill takes milliseconds, instead of reading the whole file.
        transaction.set_quick_repair(true);
        Ok(transaction)
    }

    pub(in crate::store) fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        Ok(self.database.begin_read()?)
    }

    /// Fails if another file has replaced this one at its path.
    pub(in crate::store) fn check_not_replaced(&self) -> Result<(), StoreError> {
        let location = self.lock_location();
        if FileIdentity::of_path(location.path()).is_ok_and(|now| now == self.identity) {
            Ok(())
        } else {
            Err(StoreError::Replaced { path: location.path().to_owned() })
        }
    }

    pub(in crate::store) fn database_mut(&mut self) -> &mut Database {
        &mut self.database
    }

    /// Opens the state of the last commit.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        Snapshot::open(&self.database.begin_read()?)
    }
}

fn create_draft(path: &Path) -> Result<Draft, StoreError> {
    let draft = new_draft(path)?;
    fill_new(draft.path(), |transaction| {
        let mut random = [0_u8; 32];
        getrandom::fill(&mut random)?;
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_SCHEMA, SCHEMA.to_le_bytes().as_slice())?;
        meta.insert(META_FIELDS, known_fields().as_bytes())?;
        meta.insert(META_SECRET, secret::encode(&random).as_slice())?;
        drop(meta);
        tables::create_tables(transaction)
    })?;
    Ok(draft)
}

/// Creates a database in an empty file, and fills it in one transaction.
pub(in crate::store) fn fill_new(
    path: &Path,
    fill: impl FnOnce(&WriteTransaction) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let writer = create_writer(path)?;
    let transaction = writer.begin_raw()?;
    fill(&transaction)?;
    Ok(transaction.commit()?)
}

/// Creates a database without tables in an empty file.
pub(in crate::store) fn create_writer(path: &Path) -> Result<Writer, StoreError> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| io_error(path, error))?;
    let identity = FileIdentity::of_file(&file).map_err(|error| io_error(path, error))?;
    let database = open_database(&builder(), file).map_err(|error| open_error(path, error))?;
    let location = Mutex::new(FileLocation::Named(path.to_owned()));
    Ok(Writer { database: Engine::new(database), identity, location, _note: None })
}

pub(in crate::store) fn new_draft(target: &Path) -> Result<Draft, StoreError> {
    let folder = folder_of(target);
    Draft::create_for(target).map_err(|source| match is_full(&source) {
        true => StoreError::DiskFull(source),
        false => StoreError::Io { path: folder.to_owned(), source },
    })
}

fn check_version(path: &Path, database: &impl ReadableDatabase) -> Result<(), StoreError> {
    version_of(path, database)?.check(path)
}

pub(in crate::store) fn version_of(path: &Path, database: &impl ReadableDatabase) -> Result<Version, StoreError> {
    let not_ours = || StoreError::NotADatabase {
        path: path.to_owned(),
        reason: "it is a redb file of another program".to_owned(),
    };
    let meta = match database.begin_read()?.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(not_ours()),
    };
    Version::read(&meta)?.ok_or_else(not_ours)
}

fn open_follower(path: &Path) -> Result<ReadOnlyDatabase, DatabaseError> {
    builder().open_read_only(path)
}

/// A read-only handle. It follows new commits, and a file that replaces this one at its path.
pub struct Follower {
    path: PathBuf,
    database: ReadOnlyDatabase,
    stamp: FileStamp,
    newest: Arc<Snapshot>,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Follower {
    /// Opens the database for reading. If a killed writer left it unrepaired, opens it once for writing to repair it.
    pub fn open(path: &Path) -> Result<Follower, StoreError> {
        let (database, stamp) = open_and_repair(path)?;
        check_version(path, &database)?;
        let newest = Arc::new(Snapshot::open(&database.begin_read()?)?.with_witnesses());
        Ok(Follower { path: path.to_owned(), database, stamp, newest })
    }

    /// Fails if the file is a replica.
    pub fn refuse_replica(&self) -> Result<(), StoreError> {
        refuse_replica(&resolve(&self.path), &self.begin_read()?)
    }

    pub(in crate::store) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::store) fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        Ok(self.database.begin_read()?)
    }

    /// The state at the last poll.
    pub fn newest(&self) -> &Arc<Snapshot> {
        &self.newest
    }

    /// Polls for new commits, or another file at the path. Returns the same `Arc` if nothing is new.
    pub fn refresh(&mut self) -> Result<&Arc<Snapshot>, StoreError> {
        panics::guard(|| self.poll())?;
        Ok(&self.newest)
    }

    /// Continues with another handle, whose file has this stamp.
    fn follow(&mut self, database: ReadOnlyDatabase, stamp: FileStamp) -> Result<(), StoreError> {
        check_version(&self.path, &database)?;
        self.newest = Arc::new(Snapshot::open_after(&self.newest, &database.begin_read()?)?);
        (self.database, self.stamp) = (database, stamp);
        Ok(())
    }

    fn poll(&mut self) -> Result<(), StoreError> {
        let stamp = FileStamp::of_path(&self.path).map_err(|error| io_error(&self.path, error))?;
        if stamp.identity != self.stamp.identity {
            let (database, stamp) = open_and_repair(&self.path)?;
            return self.follow(database, stamp);
        }
        // A copy written into this file can have the same numbers in redb's header. Then redb reads old pages from its
        // cache. A new handle has none.
        if (stamp != self.stamp || stamp.is_recent())
            && let Ok(database) = open_follower(&self.path)
        {
            let is_same = Snapshot::read_commit(&database.begin_read()?)? == self.newest.commit();
            if !is_same || stamp.len != self.stamp.len {
                return self.follow(database, stamp);
            }
            self.stamp = stamp;
            return Ok(());
        }
        let transaction = self.database.begin_read()?;
        if Snapshot::read_commit(&transaction)? != self.newest.commit() {
            self.newest = Arc::new(Snapshot::open_after(&self.newest, &transaction)?);
        }
        Ok(())
    }
}

pub(in crate::store) fn open_and_repair(path: &Path) -> Result<(ReadOnlyDatabase, FileStamp), StoreError> {
    const REPAIR_WAIT: Duration = Duration::from_secs(5);
    let deadline = Instant::now() + REPAIR_WAIT;
    loop {
        let stamp = FileStamp::of_path(path).map_err(|error| io_error(path, error))?;
        match open_follower(path) {
            Ok(database) => {
                if FileIdentity::of_path(path).is_ok_and(|now| now == stamp.identity) {
                    return Ok((database, stamp));
                }
            }
            Err(DatabaseError::RepairAborted) => {
                match builder().open(path) {
                    Ok(repaired) => drop(repaired),
                    // Another writer is repairing it, or has repaired it.
                    Err(DatabaseError::DatabaseAlreadyOpen) => {}
                    Err(error) => return Err(repair_error(path, error)),
                }
                std::thread::sleep(RETRY_EVERY);
            }
            Err(DatabaseError::DatabaseAlreadyOpen) => std::thread::sleep(RETRY_EVERY),
            Err(error) => return Err(open_error(path, error)),
        }
        if Instant::now() >= deadline {
            return Err(StoreError::Busy { path: path.to_owned(), holder: WriterNote::read(&resolve(path)) });
        }
    }
}

fn refuse_replica(path: &Path, transaction: &ReadTransaction) -> Result<(), StoreError> {
    match find_mark(transaction)? {
        None => Ok(()),
        Some(mark) => Err(StoreError::IsReplica { path: path.to_owned(), url: mark.url }),
    }
}

/// Reads the mark and the last commit of a replica's file without its lock. An unrepaired file is repaired first.
pub fn read_replica(path: &Path) -> Result<(ReplicaMark, CommitPoint), StoreError> {
    panics::guard(|| {
        let (database, _) = open_and_repair(path)?;
        check_version(path, &database)?;
        let transaction = database.begin_read()?;
        let mark = find_mark(&transaction)?.ok_or_else(|| StoreError::NotAReplica { path: path.to_owned() })?;
        Ok((mark, Snapshot::read_commit(&transaction)?))
    })
}
