//! A replica that is being loaded: a file without a name until it is whole.

use std::io;
use std::path::{Path, PathBuf};

use redb::ReadableTable;

use crate::model::{DatabaseId, Head};
use crate::store::StoreError;
use crate::store::file::draft::{self, Draft};
use crate::store::file::links::{refuse_other_names, resolve};
use crate::store::file::open::{Writer, create_writer, new_draft};
use crate::store::file::replace::{BackupReport, write_backup};
use crate::store::format::publish::database_id;
use crate::store::format::replica::ReplicaMark;
use crate::store::format::tables::{self, META, META_SCHEMA, META_SECRET, SCHEMA};
use crate::store::pen::Pen;
use crate::store::pen::recorder::Recorder;
use crate::store::read::snapshot::{CommitPoint, last_commit};
use crate::store::replication::apply::{MakeTables, apply};
use crate::store::replication::error::ApplyError;
use crate::store::replication::replica::{ReplicaWriter, ReplicatedCommit, put_mark};

/// A load that is under way, in one transaction. Dropped, it leaves nothing behind.
pub struct ReplicaDraft {
    // Dropped in this order: the transaction, its database, the file.
    pen: Pen,
    writer: Writer,
    draft: Draft,
    target: PathBuf,
}

impl std::fmt::Debug for ReplicaDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplicaDraft").field("target", &self.target).finish_non_exhaustive()
    }
}

impl ReplicaDraft {
    /// Begins a load in the folder of the replica's file, links followed.
    ///
    /// # Errors
    /// What the file system says of the folder.
    pub fn beside(path: &Path) -> Result<ReplicaDraft, StoreError> {
        let target = resolve(path);
        draft::sweep(&target);
        let draft = new_draft(&target)?;
        let writer = create_writer(draft.path())?;
        let mut pen = Pen::new(writer.begin_raw()?);
        tables::for_each_table(&mut MakeTables(&pen))?;
        pen.record(Some(Recorder::of_digest(Default::default())));
        Ok(ReplicaDraft { pen, writer, draft, target })
    }

    /// Takes in the next part of a state.
    ///
    /// # Errors
    /// [`ApplyError::Malformed`], and when the file cannot be written. The draft must be dropped then.
    pub fn add_part(&mut self, part: &[u8]) -> Result<(), ApplyError> {
        apply(&self.pen, part)
    }

    /// Ends the load: the rows must add up to the mark's digest, and the last commit be the one expected.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub fn finish(self, mark: &ReplicaMark, head: Head) -> Result<LoadedDraft, ApplyError> {
        let ReplicaDraft { mut pen, writer, draft, target } = self;
        let digest = pen.record(None).map(|recorder| recorder.digest()).unwrap_or_default();
        if digest != mark.digest {
            return Err(ApplyError::Digest(head.seq));
        }
        let found = last_commit(&*pen.open(tables::COMMITS)?)?.map_or(CommitPoint::EMPTY, |(point, _)| point).head();
        if found != head {
            return Err(ApplyError::Base { expected: head.seq, found: found.seq });
        }
        if !is_database(&pen, mark.id)? {
            return Err(ApplyError::Malformed(format!("the rows are not those of database {}", mark.id)));
        }
        put_mark(&pen, mark)?;
        pen.commit()?;
        Ok(LoadedDraft { replica: ReplicaWriter::of(writer), draft, target })
    }
}

/// Whether the rows are a database's, and that of an id.
fn is_database(pen: &Pen, id: DatabaseId) -> Result<bool, StoreError> {
    let meta = pen.open(META)?;
    let schema = meta.get(META_SCHEMA)?.is_some_and(|schema| schema.value() == SCHEMA.to_le_bytes());
    Ok(schema && meta.get(META_SECRET)?.is_some() && database_id(&*meta)? == Some(id))
}

/// A loaded state that has no name yet.
#[derive(Debug)]
pub struct LoadedDraft {
    replica: ReplicaWriter,
    draft: Draft,
    target: PathBuf,
}

impl LoadedDraft {
    /// Applies commits, as [`ReplicaWriter::apply`].
    ///
    /// # Errors
    /// [`ApplyError`]; nothing is changed then.
    pub fn apply(&mut self, commits: &[ReplicatedCommit<'_>], mark: &ReplicaMark) -> Result<(), ApplyError> {
        self.replica.apply(commits, mark)
    }

    /// The last commit.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn head(&self) -> Result<CommitPoint, StoreError> {
        self.replica.head()
    }

    /// Writes a backup of the loaded state: a database of its own, checked.
    ///
    /// # Errors
    /// Those of [`backup`](crate::store::file::replace::backup).
    pub fn write_backup(&self, target: &Path) -> Result<BackupReport, StoreError> {
        write_backup(self.draft.path(), &self.replica.writer().begin_read()?, target)
    }

    /// Takes the name in one step. A replica that has the name is replaced, and must be handed over: it is locked until then.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] when there is another file of the name, and what the file system says.
    pub fn take_name(self, replaced: Option<ReplicaWriter>) -> Result<ReplicaWriter, StoreError> {
        let LoadedDraft { replica, draft, target } = self;
        let io_error = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Replaced { path: target.clone() },
            _ => StoreError::Io { path: target.clone(), source },
        };
        match &replaced {
            None => draft.take_new_name(&target).map_err(io_error)?,
            Some(old) => {
                if old.writer().path() != target {
                    return Err(StoreError::Replaced { path: target });
                }
                refuse_other_names(&target)?;
                draft.take_owner_of(&target).map_err(io_error)?;
                old.writer().check_in_place()?;
                draft.take_name(&target).map_err(io_error)?;
            }
        }
        drop(replaced);
        Ok(ReplicaWriter::of(replica.into_writer().name_taken(&target)))
    }
}
