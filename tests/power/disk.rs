//! Records the writes, syncs and names in one folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use medfeed::disk::{DiskEvent, DiskObserver, observe, observer};
use medfeed::store::file::open::open_databases_by;

use self::observed::open_observed;

mod observed;

/// An action on a file, which its number names, or on the folder.
#[derive(Clone, Debug)]
pub enum Action {
    Write {
        file: usize,
        at: usize,
        bytes: Vec<u8>,
    },
    SetLen {
        file: usize,
        len: usize,
    },
    Sync {
        file: usize,
    },
    Name {
        from: Option<String>,
        to: String,
        file: usize,
    },
    SyncFolder,
    /// A step was reported as done.
    Done,
}

/// Actions, in order. Earlier content is durable.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub before: BTreeMap<String, Vec<u8>>,
    pub actions: Vec<Action>,
}

/// A file as it is now. It is kept open, so that no other file gets its inode.
struct Known {
    inode: u64,
    opened: File,
    content: Vec<u8>,
}

#[derive(Default)]
struct State {
    log: Log,
    files: Vec<Known>,
}

/// The recorder of a folder. It observes this thread until it is dropped.
pub struct Disk {
    folder: PathBuf,
    state: Arc<Mutex<State>>,
    observer: DiskObserver,
}

impl Disk {
    pub fn observing(folder: &Path) -> Disk {
        let folder = fs::canonicalize(folder).unwrap();
        let mut state = State::default();
        let entries = fs::read_dir(&folder).unwrap();
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let content = fs::read(&path).unwrap();
            state.log.before.insert(name_of(&path), content.clone());
            let opened = File::open(&path).unwrap();
            state.files.push(Known {
                inode: opened.metadata().unwrap().ino(),
                opened,
                content,
            });
        }
        let state = Arc::new(Mutex::new(state));
        let (root, shared) = (folder.clone(), Arc::clone(&state));
        let observer: DiskObserver =
            Arc::new(move |event| shared.lock().unwrap().record(&root, event));
        observe(Some(Arc::clone(&observer)));
        open_databases_by(open_observed);
        Disk {
            folder,
            state,
            observer,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn done(&self) {
        self.state.lock().unwrap().log.actions.push(Action::Done);
    }

    /// Runs `run` without recording, such as writes to other folders.
    pub fn paused(&self, run: impl FnOnce()) {
        observe(None);
        run();
        observe(Some(Arc::clone(&self.observer)));
    }

    /// Ends the record.
    pub fn into_log(self) -> Log {
        observe(None);
        std::mem::take(&mut self.state.lock().unwrap().log)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

impl State {
    fn record(&mut self, root: &Path, event: DiskEvent<'_>) {
        match event {
            DiskEvent::Open { file } => drop(self.caught_up(file)),
            DiskEvent::Write { file, at, bytes } => {
                let (file, at) = (self.number(file), usize::try_from(at).unwrap());
                write(&mut self.files[file].content, at, bytes);
                self.log.actions.push(Action::Write {
                    file,
                    at,
                    bytes: bytes.to_vec(),
                });
            }
            DiskEvent::SetLen { file, len } => {
                let (file, len) = (self.number(file), usize::try_from(len).unwrap());
                self.files[file].content.resize(len, 0);
                self.log.actions.push(Action::SetLen { file, len });
            }
            DiskEvent::Sync { file } => {
                let file = self.caught_up(file);
                self.log.actions.push(Action::Sync { file });
            }
            DiskEvent::Name { from, to } => {
                let file = self.caught_up(&File::open(to).unwrap());
                assert_eq!(to.parent(), Some(root), "all is in one folder");
                self.log.actions.push(Action::Name {
                    from: from.map(name_of),
                    to: name_of(to),
                    file,
                });
            }
            DiskEvent::Remove { .. } => panic!("nothing is removed"),
            DiskEvent::SyncFolder { folder } => {
                let found = fs::canonicalize(folder).unwrap();
                assert_eq!(found, root, "all is in one folder");
                self.log.actions.push(Action::SyncFolder);
            }
        }
    }

    fn number(&mut self, file: &File) -> usize {
        let inode = file.metadata().unwrap().ino();
        if let Some(known) = self.files.iter().position(|known| known.inode == inode) {
            return known;
        }
        // A descriptor of its own, because shared descriptors share their locks.
        let opened = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        self.files.push(Known {
            inode,
            opened,
            content: Vec::new(),
        });
        self.files.len() - 1
    }

    /// Records a write that used no backend, such as a copied backup, as one action.
    fn caught_up(&mut self, file: &File) -> usize {
        let number = self.number(file);
        let known = &mut self.files[number];
        let mut content = Vec::new();
        std::io::Seek::rewind(&mut known.opened).unwrap();
        known.opened.read_to_end(&mut content).unwrap();
        if content != known.content {
            known.content.clone_from(&content);
            let len = content.len();
            self.log.actions.push(Action::Write {
                file: number,
                at: 0,
                bytes: content,
            });
            self.log.actions.push(Action::SetLen { file: number, len });
        }
        number
    }
}

/// Writes bytes into a content, which grows if necessary.
pub fn write(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}
