//! Where rows come from: files, folders, standard input.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::bounds::TooLarge;
use crate::model::flat::BYTE_ORDER_MARK;

/// The four kinds of rows that files hold; what is linked comes before what links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase", parse_err_ty = UnknownWord, parse_err_fn = unknown_kind)]
pub enum RowKind {
    /// What records link to by name, first kind.
    Organizations,
    /// What records link to by type and name.
    Tags,
    /// Medical conference editions.
    Conferences,
    /// Medical journals.
    Journals,
}

/// How rows are written; the name is the ending of such files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase", parse_err_ty = UnknownWord, parse_err_fn = unknown_format)]
pub enum Format {
    /// One JSON object per line.
    Jsonl,
    /// A flat table with a header.
    Csv,
}

/// The text named no kind of rows, or no format.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is none of {known}")]
pub struct UnknownWord {
    text: String,
    known: &'static str,
}

fn unknown_kind(text: &str) -> UnknownWord {
    UnknownWord { text: text.to_owned(), known: "`organizations`, `tags`, `conferences`, `journals`" }
}

fn unknown_format(text: &str) -> UnknownWord {
    UnknownWord { text: text.to_owned(), known: "`jsonl`, `csv`" }
}

/// Why a path gives no rows to read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SourceError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(
        "{}: the name does not tell what the file holds; name it `conferences`, `journals`, `organizations` or `tags` \
         with `.jsonl` or `.csv` (and `.gz`), or give it as standard input: `- --dataset conferences --format jsonl`",
        path.display()
    )]
    UnknownName { path: PathBuf },
    #[error(
        "the folder {} holds nothing to import; its files must be named `conferences`, `journals`, `organizations` or \
         `tags` with `.jsonl` or `.csv` (and `.gz`)",
        path.display()
    )]
    NothingInFolder { path: PathBuf },
    #[error("`-` (standard input) needs --dataset and --format, such as `- --dataset conferences --format jsonl`")]
    UntoldStandardInput,
    #[error("`-` (standard input) can be given only once")]
    StandardInputTwice,
    #[error("no file, folder or `-` is given")]
    NothingGiven,
}

/// One input of rows.
#[derive(Clone, Debug)]
pub struct Source {
    name: Arc<str>,
    kind: RowKind,
    format: Format,
    input: Input,
}

#[derive(Clone, Debug)]
enum Input {
    File(PathBuf),
    StandardInput,
}

impl Source {
    /// The sources that the paths name: files, folders, and `-` for standard input, of which `standard_input` tells
    /// what it holds.
    ///
    /// # Errors
    /// When a path cannot be read or does not tell what it holds.
    pub fn find(paths: &[PathBuf], standard_input: Option<(RowKind, Format)>) -> Result<Vec<Source>, SourceError> {
        let mut sources = Vec::new();
        let mut has_standard_input = false;
        for path in paths {
            if path.as_os_str() == "-" {
                if std::mem::replace(&mut has_standard_input, true) {
                    return Err(SourceError::StandardInputTwice);
                }
                let (kind, format) = standard_input.ok_or(SourceError::UntoldStandardInput)?;
                sources.push(Source { name: "-".into(), kind, format, input: Input::StandardInput });
                continue;
            }
            let unreadable = |error| SourceError::Unreadable { path: path.clone(), error };
            if fs::metadata(path).map_err(unreadable)?.is_dir() {
                // Listed rather than probed name by name, so that a folder without permission says so.
                let mut found = Vec::new();
                for entry in fs::read_dir(path).map_err(unreadable)? {
                    found.extend(Source::of_file(&entry.map_err(unreadable)?.path()).filter(Source::is_file));
                }
                if found.is_empty() {
                    return Err(SourceError::NothingInFolder { path: path.clone() });
                }
                found.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
                sources.extend(found);
            } else {
                let source = Source::of_file(path).ok_or_else(|| SourceError::UnknownName { path: path.clone() })?;
                sources.push(source);
            }
        }
        if sources.is_empty() { Err(SourceError::NothingGiven) } else { Ok(sources) }
    }

    /// The source of a file whose name tells what it holds.
    fn of_file(path: &Path) -> Option<Source> {
        let name = path.file_name()?.to_str()?;
        let (stem, ending) = name.strip_suffix(".gz").unwrap_or(name).split_once('.')?;
        let (kind, format) = (stem.parse().ok()?, ending.parse().ok()?);
        Some(Source { name: path.to_string_lossy().into(), kind, format, input: Input::File(path.to_owned()) })
    }

    fn is_file(&self) -> bool {
        match &self.input {
            Input::File(path) => path.is_file(),
            Input::StandardInput => false,
        }
    }

    /// The name that reports use.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What rows it holds.
    pub fn kind(&self) -> RowKind {
        self.kind
    }

    /// How they are written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The size by which progress is measured; `None` where it is unknown.
    pub fn size_bytes(&self) -> Option<u64> {
        match &self.input {
            Input::File(path) => fs::metadata(path).ok().map(|metadata| metadata.len()),
            Input::StandardInput => None,
        }
    }

    /// Its content, decompressed, without a byte-order mark, read piece by piece. `progress` hears of each piece, in
    /// bytes of the file itself. After `max_bytes` decompressed bytes the next one is [`TooLarge`].
    ///
    /// What is gzip is seen by its first bytes and not by the name: browsers and `curl` store a compressed answer
    /// under either.
    pub(super) fn open<'p>(&self, max_bytes: u64, progress: &'p mut dyn FnMut(u64)) -> io::Result<Box<dyn Read + 'p>> {
        let stored: Box<dyn Read> = match &self.input {
            Input::File(path) => Box::new(File::open(path)?),
            Input::StandardInput => Box::new(io::stdin().lock()),
        };
        let (magic, stored) = begin::<{ GZIP_MAGIC.len() }, _>(Counted { from: stored, progress })?;
        let content: Box<dyn Read + 'p> = if magic == GZIP_MAGIC {
            Box::new(Gunzip(MultiGzDecoder::new(BufReader::with_capacity(PIECE_BYTES, stored))))
        } else if self.name.ends_with(".gz") && !magic.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is named .gz but is no gzip file"));
        } else {
            Box::new(stored)
        };
        let bounded = Bounded { from: content, max_bytes, left: max_bytes };
        let (mark, content) = begin::<{ BYTE_ORDER_MARK.len() }, _>(bounded)?;
        if mark == BYTE_ORDER_MARK {
            let (_, text) = content.into_inner();
            return Ok(Box::new(text));
        }
        Ok(Box::new(content))
    }
}

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// The size of reads from a file.
const PIECE_BYTES: usize = 1 << 17;

/// The first bytes, already read, followed by the rest.
type Begun<R> = io::Chain<Cursor<Vec<u8>>, R>;

/// The first bytes, up to `N`, and a reader of everything, those included.
fn begin<const N: usize, R: Read>(mut from: R) -> io::Result<(Vec<u8>, Begun<R>)> {
    let mut first = Vec::with_capacity(N);
    from.by_ref().take(N as u64).read_to_end(&mut first)?;
    Ok((first.clone(), Cursor::new(first).chain(from)))
}

/// Reports how much was read.
struct Counted<'p, R> {
    from: R,
    progress: &'p mut dyn FnMut(u64),
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = loop {
            match self.from.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        (self.progress)(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(read)
    }
}

/// Decompresses, and distinguishes damage from I/O errors.
struct Gunzip<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        self.0.read(buffer).map_err(|error| match error.kind() {
            InvalidData | InvalidInput | UnexpectedEof => {
                io::Error::new(error.kind(), format!("it is damaged gzip: {error}"))
            }
            _ => error,
        })
    }
}

/// Fails with [`TooLarge`] after `max_bytes`.
struct Bounded<R> {
    from: R,
    max_bytes: u64,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.from.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::other(TooLarge { max_bytes: self.max_bytes })),
            };
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.from.read(&mut buffer[..room])?;
        self.left -= u64::try_from(read).unwrap_or(u64::MAX);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn names_tell_what_files_hold() {
        let cases = [
            ("conferences.jsonl", Some((RowKind::Conferences, Format::Jsonl))),
            ("a/b.c/journals.csv", Some((RowKind::Journals, Format::Csv))),
            ("tags.csv.gz", Some((RowKind::Tags, Format::Csv))),
            ("organizations.jsonl.gz", Some((RowKind::Organizations, Format::Jsonl))),
            ("conferences.json", None),
            ("conferences.gz", None),
            ("conferences", None),
            ("conferences-2026.csv", None),
            ("conferences.csv.bak", None),
            ("README.md", None),
            (".csv", None),
        ];
        for (path, expected) in cases {
            let found = Source::of_file(Path::new(path)).map(|source| (source.kind(), source.format()));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn folders_are_read_for_the_known_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let find = || Source::find(std::slice::from_ref(&path), None);
        fs::write(path.join("README.md"), "x").unwrap();
        fs::create_dir(path.join("tags.csv")).unwrap();
        assert!(matches!(find(), Err(SourceError::NothingInFolder { .. })));
        for name in ["journals.csv.gz", "conferences.csv", "conferences.jsonl", "organizations.csv"] {
            fs::write(path.join(name), "").unwrap();
        }
        let names: Vec<String> = find().unwrap().iter().map(|source| source.name().to_string()).collect();
        let expected = ["organizations.csv", "conferences.csv", "conferences.jsonl", "journals.csv.gz"];
        assert_eq!(names, expected.map(|name| path.join(name).display().to_string()));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let told = Some((RowKind::Tags, Format::Csv));
        let cases = [
            (vec!["/nonexistent/tags.csv"], None, "cannot read /nonexistent/tags.csv: No such file"),
            (vec!["Cargo.toml"], None, "Cargo.toml: the name does not tell"),
            (vec!["-"], None, "`-` (standard input) needs --dataset and --format"),
            (vec!["-", "-"], told, "only once"),
            (vec![], None, "no file, folder"),
        ];
        for (paths, standard_input, expected) in cases {
            let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
            let error = Source::find(&paths, standard_input).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    fn read(source: &Source, max_bytes: u64, progress: &mut dyn FnMut(u64)) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        source.open(max_bytes, progress)?.read_to_end(&mut content).map(|_| content)
    }

    #[test]
    fn content_is_decompressed_and_loses_its_mark() {
        let two_members = [gzip("\u{feff}a"), gzip("b")].concat();
        let cut = gzip("hello hello hello")[..20].to_vec();
        let cases: [(&str, Vec<u8>, Option<&str>); 8] = [
            ("tags.csv", b"ab".to_vec(), Some("ab")),
            ("tags.csv", "\u{feff}ab".into(), Some("ab")),
            ("tags.csv.gz", two_members.clone(), Some("ab")),
            ("tags.jsonl", two_members, Some("ab")),
            ("tags.csv", vec![], Some("")),
            ("tags.csv.gz", vec![], Some("")),
            ("tags.csv.gz", b"plain".to_vec(), None),
            ("tags.csv.gz", cut, None),
        ];
        let folder = tempfile::tempdir().unwrap();
        for (name, stored, expected) in cases {
            let path = folder.path().join(name);
            fs::write(&path, &stored).unwrap();
            let mut counted = 0;
            let content = read(&Source::of_file(&path).unwrap(), u64::MAX, &mut |bytes| counted += bytes);
            assert_eq!(content.ok().as_deref(), expected.map(str::as_bytes), "{name} {stored:?}");
            // What is refused by its first bytes is not read on.
            assert!(expected.is_none() || counted == u64::try_from(stored.len()).unwrap(), "{name}: {counted}");
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let damaged = [gzip("abcd"), b"more".to_vec()].concat();
        let cases = [
            (b"abcd".to_vec(), 4, "abcd"),
            (b"abcd".to_vec(), 3, "the file is too large: it holds more than 3 bytes, decompressed"),
            (gzip("abcd"), 4, "abcd"),
            (gzip("abcd"), 3, "the file is too large: it holds more than 3 bytes, decompressed"),
            (gzip(&"\0".repeat(1 << 24)), 1 << 20, "holds more than 1048576 bytes"),
            (damaged.clone(), 3, "holds more than 3 bytes"),
            (damaged, 5, "it is damaged gzip"),
            (vec![], 0, ""),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tags.jsonl");
        for (stored, max_bytes, expected) in cases {
            fs::write(&path, &stored).unwrap();
            let told = match read(&Source::of_file(&path).unwrap(), max_bytes, &mut |_| {}) {
                Ok(content) => String::from_utf8(content).unwrap(),
                Err(error) => error.to_string(),
            };
            assert!(
                told.contains(expected) && told.is_empty() == expected.is_empty(),
                "{max_bytes} {stored:.40?}: {told}"
            );
        }
    }
}
