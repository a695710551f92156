//! A bucket in a folder. After a power loss, each object that was reported as written is there, whole, and stays there.
//! An object that was being written or replaced has one of the two contents. Later writes are kept too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use medfeed::bucket::{Bucket, Created};
use medfeed::disk::{self, DiskEvent, DiskObserver, observe, report};
use medfeed::replicate::layout;

use super::histories::memory;
use crate::process::site::Random;

/// An event in the folder. Names are relative to it.
#[derive(Clone, Debug)]
pub enum Step {
    /// A name belongs to another entry from now on, or to none.
    Name { name: String, entry: Option<Entry> },
    /// The names in a folder become durable.
    SyncFolder { name: String },
    /// An object is being written, replaced or (without content) deleted.
    Begun {
        name: String,
        bytes: Option<Vec<u8>>,
    },
    /// The begun write was reported as done.
    Done {
        name: String,
        bytes: Option<Vec<u8>>,
    },
}

/// The file or folder behind a name.
#[derive(Clone, Debug)]
pub enum Entry {
    Folder,
    /// A file is durable if it was synced before it got this name.
    File {
        bytes: Vec<u8>,
        is_synced: bool,
    },
}

type Tree = BTreeMap<String, Entry>;

/// A name in the folder of this inode that is new, has other content, or was removed.
struct Change {
    folder: usize,
    name: String,
    entry: Option<(Entry, usize)>,
}

/// The folders of a disk by their inodes. A folder that is removed and made again is another one.
struct Inodes {
    /// The inodes of the folders that programs see, by name.
    seen: BTreeMap<String, usize>,
    /// The durable names of each inode. A folder's entry has its inode.
    durable: Vec<BTreeMap<String, (Entry, usize)>>,
    /// The changes that are not durable, in their order.
    later: Vec<Change>,
}

impl Inodes {
    fn new() -> Inodes {
        Inodes {
            seen: [(String::new(), 0)].into(),
            durable: vec![BTreeMap::new()],
            later: Vec::new(),
        }
    }

    fn change(&mut self, name: &str, entry: Option<Entry>) {
        let folder = self.seen[name.rsplit_once('/').map_or("", |(folder, _)| folder)];
        self.seen.remove(name);
        let inode = self.durable.len();
        if matches!(entry, Some(Entry::Folder)) {
            self.durable.push(BTreeMap::new());
            self.seen.insert(name.to_owned(), inode);
        }
        self.later.push(Change {
            folder,
            name: name.to_owned(),
            entry: entry.map(|entry| (entry, inode)),
        });
    }

    /// Makes those of the first `count` changes durable that are picked.
    fn keep(&mut self, count: usize, is_picked: impl Fn(usize) -> bool) {
        let mut left = count;
        let Inodes { durable, later, .. } = self;
        later.retain(
            |Change {
                 folder,
                 name,
                 entry,
             }| {
                let is_kept = left > 0 && is_picked(*folder);
                if is_kept {
                    left -= 1;
                    match entry {
                        Some(entry) => durable[*folder].insert(name.clone(), entry.clone()),
                        None => durable[*folder].remove(name),
                    };
                }
                !is_kept
            },
        );
    }

    /// Adds everything that can be reached from a folder.
    fn collect(&self, folder: usize, tree: &mut Tree) {
        for (name, (entry, inode)) in &self.durable[folder] {
            tree.insert(name.clone(), entry.clone());
            if matches!(entry, Entry::Folder) {
                self.collect(*inode, tree);
            }
        }
    }
}

/// Records the events in a folder, by this thread.
struct Recorder {
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Recorder {
    fn of(root: &Path) -> Recorder {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let (root, shared) = (root.to_owned(), Arc::clone(&steps));
        let synced = Mutex::new(BTreeMap::<u64, Vec<u8>>::new());
        let observer: DiskObserver = Arc::new(move |event| {
            let name = |path: &Path| {
                path.strip_prefix(&root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            };
            let content = |file: &File| {
                fs::read(format!(
                    "/proc/self/fd/{}",
                    std::os::fd::AsRawFd::as_raw_fd(file)
                ))
            };
            let step = match event {
                DiskEvent::Sync { file } => {
                    synced
                        .lock()
                        .unwrap()
                        .insert(file.metadata().unwrap().ino(), content(file).unwrap());
                    return;
                }
                DiskEvent::Name { to, .. } if to.is_dir() => Step::Name {
                    name: name(to),
                    entry: Some(Entry::Folder),
                },
                DiskEvent::Name { to, .. } => {
                    let (bytes, inode) = (fs::read(to).unwrap(), fs::metadata(to).unwrap().ino());
                    let is_synced = synced.lock().unwrap().get(&inode) == Some(&bytes);
                    Step::Name {
                        name: name(to),
                        entry: Some(Entry::File { bytes, is_synced }),
                    }
                }
                DiskEvent::Remove { path } => Step::Name {
                    name: name(path),
                    entry: None,
                },
                DiskEvent::SyncFolder { folder } => Step::SyncFolder { name: name(folder) },
                other => panic!("{other:?}"),
            };
            shared.lock().unwrap().push(step);
        });
        observe(Some(observer));
        Recorder { steps }
    }

    fn push(&self, step: Step) {
        self.steps.lock().unwrap().push(step);
    }

    fn into_steps(self) -> Vec<Step> {
        observe(None);
        std::mem::take(&mut self.steps.lock().unwrap())
    }
}

fn bucket_in(folder: &Path) -> Bucket {
    Bucket::open(
        &format!("file://{}", folder.display()).parse().unwrap(),
        None,
    )
    .unwrap()
}

/// A folder of objects that are replaced again and again.
const REPLACED: &str = "replaced";

/// An object's name: of an entry, a state, a part of one, or an object that is replaced again and again.
fn name(random: &mut Random) -> String {
    let slot = 1 + random.below(6) as u64;
    match random.below(5) {
        0 => layout::ALIVE.to_owned(),
        1 => format!("{REPLACED}/here"),
        2 => layout::state(slot),
        3 => format!("{}/{slot:020}-{:016x}/00000", layout::PARTS, slot),
        _ => layout::log(slot),
    }
}

/// Writes, replaces and deletes objects. Now and then another publisher is killed before it syncs the folders of an
/// object.
fn history(random: &mut Random) -> Vec<Step> {
    let folder = tempfile::tempdir_in(memory()).unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let recorder = Recorder::of(&root);
    let bucket = bucket_in(&root);
    bucket.prepare().unwrap();
    for number in 0..12 {
        let name = name(random);
        let bytes = format!("{name} {number} {}", "x".repeat(random.below(3000))).into_bytes();
        if random.percent(15) {
            let made = root.join(&name).parent().unwrap().to_owned();
            for above in made
                .ancestors()
                .take_while(|above| *above != root)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
            {
                if !above.exists() {
                    fs::create_dir(above).unwrap();
                    report(DiskEvent::Name {
                        from: None,
                        to: above,
                    });
                }
            }
            let path = root.join(&name);
            if random.percent(50) && !path.exists() {
                recorder.push(Step::Begun {
                    name: name.clone(),
                    bytes: Some(b"of the other".to_vec()),
                });
                fs::write(&path, "of the other").unwrap();
                disk::sync(&File::open(&path).unwrap()).unwrap();
                report(DiskEvent::Name {
                    from: None,
                    to: &path,
                });
            }
        }
        let is_deleted = random.below(4) == 0;
        recorder.push(Step::Begun {
            name: name.clone(),
            bytes: (!is_deleted).then(|| bytes.clone()),
        });
        if is_deleted {
            bucket.delete(&name).unwrap();
        } else if random.percent(50) {
            bucket.put(&name, &bytes).unwrap();
        } else {
            bucket.create(&name, &bytes).unwrap();
        }
        let written = bucket.get(&name).unwrap().map(|object| object.bytes);
        recorder.push(Step::Done {
            name,
            bytes: written,
        });
    }
    recorder.into_steps()
}

/// The folder after a power loss at one moment: the synced names, and a part of the later ones.
fn image(steps: &[Step], random: &mut Random) -> Tree {
    let mut inodes = Inodes::new();
    for step in steps {
        match step {
            Step::Name { name, entry } => inodes.change(name, entry.clone()),
            Step::SyncFolder { name } => {
                if let Some(synced) = inodes.seen.get(name).copied() {
                    inodes.keep(usize::MAX, |folder| folder == synced);
                }
            }
            Step::Begun { .. } | Step::Done { .. } => {}
        }
    }
    // Names become durable in their order, of all folders together or of each folder by itself.
    if random.percent(50) {
        inodes.keep(random.below(inodes.later.len() + 1), |_| true);
    } else {
        let folders: BTreeSet<usize> = inodes.later.iter().map(|change| change.folder).collect();
        for chosen in folders {
            let count = inodes.later.iter();
            let count = count.filter(|change| change.folder == chosen).count();
            inodes.keep(random.below(count + 1), |folder| folder == chosen);
        }
    }
    let mut tree = Tree::new();
    inodes.collect(0, &mut tree);
    tree
}

fn unpack(tree: &Tree, root: &Path, random: &mut Random) {
    for (name, entry) in tree {
        let path = root.join(name);
        match entry {
            Entry::Folder => fs::create_dir(path).unwrap(),
            Entry::File { bytes, is_synced } => {
                // Without a sync, a part of the content may be there, or none.
                let kept = if *is_synced {
                    bytes.len()
                } else {
                    random.below(bytes.len() + 1)
                };
                fs::write(path, &bytes[..kept]).unwrap();
            }
        }
    }
}

/// The contents that each object may have after the steps.
fn allowed(steps: &[Step]) -> BTreeMap<String, BTreeSet<Option<Vec<u8>>>> {
    let mut allowed: BTreeMap<String, BTreeSet<Option<Vec<u8>>>> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Begun { name, bytes } => {
                allowed
                    .entry(name.clone())
                    .or_insert_with(|| [None].into())
                    .insert(bytes.clone());
            }
            // A deletion may be lost: then the old content is there again.
            Step::Done { name, bytes: None } => {
                allowed.entry(name.clone()).or_default().insert(None);
            }
            Step::Done { name, bytes } => {
                allowed.insert(name.clone(), [bytes.clone()].into());
            }
            _ => {}
        }
    }
    allowed
}

/// Examines images of histories. Returns their number, or the fault of one.
pub fn examine(cases: u64, seed: u64, keep: impl Fn(&Step) -> bool) -> Result<u64, String> {
    const IMAGES_PER_RUN: u64 = 30;
    let mut count = 0;
    for seed in (seed..).take_while(|other| (other - seed) * IMAGES_PER_RUN < cases) {
        let mut random = Random::new(seed);
        let mut steps = history(&mut random);
        steps.retain(&keep);
        for _ in 0..IMAGES_PER_RUN {
            let at = 1 + random.below(steps.len());
            let folder = tempfile::tempdir_in(memory()).unwrap();
            let tree = image(&steps[..at], &mut random);
            unpack(&tree, folder.path(), &mut random);
            is_as_reported(&steps[..at], folder.path(), &mut random).map_err(|error| {
                format!("seed {seed}, after step {at} of {}: {error}", steps.len())
            })?;
            count += 1;
        }
    }
    Ok(count)
}

fn is_as_reported(steps: &[Step], folder: &Path, random: &mut Random) -> Result<(), String> {
    let bucket = bucket_in(folder);
    bucket.prepare().unwrap();
    let mut there = BTreeSet::new();
    for (name, allowed) in allowed(steps) {
        let found = bucket.get(&name).unwrap().map(|object| object.bytes);
        if !allowed.contains(&found) {
            let found = found.map_or("missing".to_owned(), |bytes| {
                format!("{} bytes", bytes.len())
            });
            return Err(format!(
                "{name} is {found}, and not one of {}",
                allowed.len()
            ));
        }
        there.extend(found.is_some().then_some(name));
    }
    let listed = [layout::LOG, layout::STATES, layout::PARTS, REPLACED]
        .into_iter()
        .flat_map(|folder| bucket.list(folder, None).unwrap())
        .map(|object| object.name);
    let expected = there.iter().filter(|name| name.contains('/')).cloned();
    assert_eq!(
        listed.collect::<BTreeSet<_>>(),
        expected.collect::<BTreeSet<_>>()
    );
    // The next writer.
    let name = name(random);
    let created = bucket.create(&name, b"next").unwrap();
    assert_eq!(created == Created::Exists, there.contains(&name), "{name}");
    assert_eq!(
        bucket.get(&name).unwrap().unwrap().bytes == b"next",
        created == Created::New,
        "{name}"
    );
    Ok(())
}

/// Whether the test notices a disk that never syncs folders.
pub fn is_noticed_without_folder_syncs() -> bool {
    examine(600, 1, |step| !matches!(step, Step::SyncFolder { .. })).is_err()
}
