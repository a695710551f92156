//! The possible contents of a disk after a power loss: all synced writes, and any part of the later ones.
//!
//! A disk keeps each sector of 512 bytes as one of the versions that it was sent since the last sync. So an image is
//! made of any of the later writes, whole or torn. The order in which a disk writes them makes no other images: an
//! older version that is written last is the same as a newer one that is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::disk::{Action, write};
use super::histories::Record;
use crate::process::site::Random;

const SECTOR: usize = 512;

/// The attempts to make an image that is like none before.
const TRIES: usize = 6;

/// The files of a folder after a power loss.
#[derive(Clone, Debug)]
pub struct Image {
    /// The number of actions before the power loss.
    pub at: usize,
    /// The number of steps that were reported as done.
    pub done: usize,
    pub files: BTreeMap<String, Vec<u8>>,
}

/// A file: its durable content, and the later actions.
#[derive(Clone, Debug, Default)]
struct Later {
    durable: Rc<Vec<u8>>,
    actions: Vec<usize>,
}

/// The state of a disk at one moment.
struct Moment<'r> {
    record: &'r Record,
    files: Vec<Later>,
    names: BTreeMap<String, usize>,
    later_names: Vec<usize>,
    at: usize,
    done: usize,
}

/// Images at random moments of a record.
pub fn images(record: &Record, count: u64, random: &mut Random) -> Vec<Image> {
    if record.actions.is_empty() {
        return Vec::new();
    }
    let mut moments: Vec<usize> = (0..count)
        .map(|_| 1 + random.below(record.actions.len()))
        .collect();
    moments.sort_unstable();
    let mut seen = BTreeSet::new();
    let files = record.before.values();
    let mut moment = Moment {
        record,
        files: files
            .map(|content| Later {
                durable: Rc::new(content.clone()),
                actions: Vec::new(),
            })
            .collect(),
        names: record.before.keys().cloned().zip(0..).collect(),
        later_names: Vec::new(),
        at: 0,
        done: 0,
    };
    moments
        .into_iter()
        .map(|at| {
            while moment.at < at {
                moment.pass();
            }
            // Tries another image if this one is like an earlier one.
            let mut image = moment.image(random);
            for _ in 0..TRIES {
                if seen.insert(image.hash()) {
                    break;
                }
                image = moment.image(random);
            }
            image
        })
        .collect()
}

impl Image {
    /// Identifies the files and the number of finished steps.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.done.to_le_bytes());
        for (name, content) in &self.files {
            hasher.update(name.as_bytes()).update(content);
        }
        *hasher.finalize().as_bytes()
    }
}

impl Moment<'_> {
    /// The next action.
    fn pass(&mut self) {
        let at = self.at;
        self.at += 1;
        match &self.record.actions[at] {
            Action::Write { file, .. } | Action::SetLen { file, .. } => {
                self.file(*file).actions.push(at)
            }
            Action::Sync { file } => {
                let record = self.record;
                let later = self.file(*file);
                let mut content = Vec::clone(&later.durable);
                std::mem::take(&mut later.actions)
                    .into_iter()
                    .for_each(|at| apply(&mut content, &record.actions[at]));
                later.durable = Rc::new(content);
            }
            Action::Name { .. } => self.later_names.push(at),
            Action::SyncFolder => {
                for at in std::mem::take(&mut self.later_names) {
                    rename(&mut self.names, &self.record.actions[at]);
                }
            }
            Action::Done => self.done += 1,
        }
    }

    fn file(&mut self, number: usize) -> &mut Later {
        if self.files.len() <= number {
            self.files.resize_with(number + 1, Later::default);
        }
        &mut self.files[number]
    }

    fn image(&self, random: &mut Random) -> Image {
        let mut names = self.names.clone();
        // Names change one after the other, in any file system, with a journal or without.
        let kept = random.below(self.later_names.len() + 1);
        self.later_names[..kept]
            .iter()
            .for_each(|at| rename(&mut names, &self.record.actions[*at]));
        let files = names
            .into_iter()
            .map(|(name, file)| (name, self.content(&self.files[file], random)))
            .collect();
        Image {
            at: self.at,
            done: self.done,
            files,
        }
    }

    /// One of the contents that a file can have.
    fn content(&self, later: &Later, random: &mut Random) -> Vec<u8> {
        let mut content = Vec::clone(&later.durable);
        let count = later.actions.len();
        let pick = random.below(count);
        let (share, torn) = (
            random.below(5) * 25,
            if random.percent(40) { 30 } else { 0 },
        );
        let kind = random.below(5);
        let chosen = later
            .actions
            .iter()
            .enumerate()
            .filter(|(index, _)| match kind {
                // The first ones, all but one, one alone, or any.
                0 => *index < pick,
                1 => *index != pick,
                2 => *index == pick,
                _ => random.percent(share),
            });
        let chosen: Vec<usize> = chosen.map(|(_, at)| *at).collect();
        // Without a new length in its inode, a file keeps its old end.
        let grows = random.percent(50);
        for at in chosen {
            match &self.record.actions[at] {
                Action::Write { at, bytes, .. } => {
                    let is_torn = random.percent(torn);
                    let fits = |end: usize| grows || end <= content.len();
                    if !is_torn && fits(at + bytes.len()) {
                        write(&mut content, *at, bytes);
                        continue;
                    }
                    let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
                    let scattered = random.percent(50);
                    for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                        let start = index * SECTOR;
                        let is_kept = if scattered {
                            random.percent(50)
                        } else {
                            (from..=to).contains(&start)
                        };
                        let end = at + start + sector.len();
                        if (is_kept || !is_torn) && (grows || end <= content.len()) {
                            write(&mut content, at + start, sector);
                        }
                    }
                }
                other => apply(&mut content, other),
            }
        }
        content
    }
}

fn apply(content: &mut Vec<u8>, action: &Action) {
    match action {
        Action::Write { at, bytes, .. } => write(content, *at, bytes),
        Action::SetLen { len, .. } => content.resize(*len, 0),
        _ => {}
    }
}

fn rename(names: &mut BTreeMap<String, usize>, action: &Action) {
    if let Action::Name { from, to, file } = action {
        from.as_ref().and_then(|from| names.remove(from));
        names.insert(to.clone(), *file);
    }
}
