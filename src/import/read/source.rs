//! The sources of rows: files, folders and standard input. They are opened, decompressed, and decoded to UTF-8.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use flate2::bufread::MultiGzDecoder;
use strum::{Display, EnumString, VariantNames};

use super::options::{InputError, ReadOptions, TextEncoding};
pub use super::row_kind::RowKind;
use super::words::has_word;
use crate::disk::Bounded;

/// A file format. Its name is the file name extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum FileFormat {
    /// One JSON object per line.
    #[strum(to_string = "jsonl", serialize = "ndjson")]
    Jsonl,
    /// A JSON list of objects.
    Json,
    /// A flat table with a header; commas, semicolons, tabs or `|` separate its cells.
    #[strum(to_string = "csv", serialize = "tsv")]
    Csv,
    /// An Excel workbook with one sheet per kind of row.
    #[strum(
        to_string = "xlsx",
        serialize = "xlsm",
        serialize = "xls",
        serialize = "ods"
    )]
    Xlsx,
}

/// One input of rows.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name in reports.
    pub name: Arc<str>,
    /// The kind of the rows. Sheets of a workbook may have other kinds.
    pub kind: Option<RowKind>,
    format: Option<FileFormat>,
    /// `None` for standard input.
    pub path: Option<PathBuf>,
    /// Whether it is a file of a folder whose name says no kind. It is not read, and a warning names it.
    pub is_skipped: bool,
}

/// The options `--dataset` and `--format`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourceOptions {
    /// The kind of the rows.
    pub kind: Option<RowKind>,
    /// The format. By default it is detected from the file name or the content.
    pub format: Option<FileFormat>,
}

/// The stem of the workbook that an export writes.
pub const WORKBOOK_STEM: &str = "medfeed";

impl Source {
    /// Returns the sources for paths: files, folders, and `-` for standard input.
    pub fn find(paths: &[PathBuf], options: SourceOptions) -> Result<Vec<Source>, InputError> {
        let mut sources = Vec::new();
        for path in paths {
            if path.as_os_str() == "-" {
                sources.push(Source::standard_input(options)?);
                continue;
            }
            let metadata = fs::metadata(path);
            let metadata = metadata.map_err(|error| InputError::unreadable(path, &error))?;
            if metadata.is_dir() {
                sources.extend(Source::from_given_folder(path, options)?);
            } else {
                sources.push(Source::from_file(path, options)?);
            }
        }
        Ok(sources)
    }

    fn standard_input(options: SourceOptions) -> Result<Source, InputError> {
        if options.kind.is_none() && options.format != Some(FileFormat::Xlsx) {
            let message = "`-` (standard input) needs --dataset, such as `- --dataset conferences`, unless it is a \
                           workbook (--format xlsx)";
            return Err(InputError(None, message.to_owned()));
        }
        Ok(Source {
            path: None,
            ..Source::new(Path::new("-"), options.kind, options.format)
        })
    }

    /// Returns the sources in a folder that was given by its path.
    fn from_given_folder(path: &Path, options: SourceOptions) -> Result<Vec<Source>, InputError> {
        let found =
            Source::in_folder(path).map_err(|error| InputError::unreadable(path, &error))?;
        let shown = path.display();
        let message = if options.kind.is_some() {
            format!(
                "a dataset (--dataset, or that of a recipe) applies to a file, and {shown} is a folder; give the file"
            )
        } else if found.iter().all(|source| source.is_skipped) {
            format!(
                "the folder {shown} contains nothing to import; its files must be named `conferences`, `journals`, \
                 `organizations` or `tags` with `.jsonl`, `.json`, `.csv` (each also with `.gz`) or `.xlsx`, or \
                 `medfeed.xlsx`"
            )
        } else {
            return Ok(found);
        };
        Err(InputError(Some(path.into()), message))
    }

    /// Returns the sources in a folder: the files with known endings. Rows that others link to come first.
    pub fn in_folder(path: &Path) -> io::Result<Vec<Source>> {
        // Probing for each known name would hide an unreadable folder.
        let mut found = Vec::new();
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            found.extend(Source::from_folder(&path).filter(|_| path.is_file()));
        }
        found.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
        Ok(found)
    }

    /// Returns the source for a file in a folder, if its ending is known.
    pub fn from_folder(path: &Path) -> Option<Source> {
        let (stem, ending) = stem_and_ending(path)?;
        let kind = kind_from_name(&stem);
        let format = ending.parse().ok()?;
        let is_skipped = kind.is_none() && !(format == FileFormat::Xlsx && stem == WORKBOOK_STEM);
        Some(Source {
            is_skipped,
            ..Source::new(path, kind, Some(format))
        })
    }

    /// Returns the source for a file that was given by its path.
    fn from_file(path: &Path, options: SourceOptions) -> Result<Source, InputError> {
        let (stem, ending) = stem_and_ending(path).unwrap_or_default();
        let last_ending = ending.rsplit('.').next().unwrap_or_default();
        let foreign = foreign_format(|endings, _| has_word(endings, last_ending));
        // With `--dataset` any name is allowed, such as `list.v2.csv`, and the content may decide the format. Without
        // it, `conferences.csv.bak` must not be a table.
        let known_ending = match options.kind {
            Some(_) => last_ending,
            None => &ending,
        };
        let named = known_ending.parse().ok();
        let format = options.format.or(named);
        let kind = options.kind.or_else(|| kind_from_name(&stem));
        let is_known = options.kind.is_some()
            || format == Some(FileFormat::Xlsx)
            || kind.and(format).is_some();
        let message = match foreign.filter(|_| options.format.is_none()) {
            Some(message) => message,
            None if is_known => {
                // The content decides, not the ending of a workbook.
                let text_format = named.filter(|format| *format != FileFormat::Xlsx);
                return Ok(Source::new(path, kind, options.format.or(text_format)));
            }
            None => {
                "the file name does not say what it contains; add `--dataset conferences`, for example, or name it \
                 `conferences`, `journals`, `organizations` or `tags` with `.xlsx`, `.csv`, `.jsonl` or `.json`"
                    .to_owned()
            }
        };
        let message = format!("{}: {message}", path.display());
        Err(InputError(Some(path.into()), message))
    }

    fn new(path: &Path, kind: Option<RowKind>, format: Option<FileFormat>) -> Source {
        Source {
            name: path.to_string_lossy().into(),
            kind,
            format,
            path: Some(path.to_owned()),
            is_skipped: false,
        }
    }

    /// Opens the decompressed content. Reading beyond the limit of decompressed bytes fails with [`too_large`].
    ///
    /// The first bytes identify gzip files and workbooks, not the name: browsers, `curl` and people change names. Text
    /// is converted to UTF-8 without a byte-order mark.
    pub(in crate::import) fn open(&self, options: &ReadOptions) -> io::Result<SourceContent> {
        let max_bytes = options.bounds.file_bytes;
        let (first, stored) = match &self.path {
            Some(path) => peek(File::open(path)?)?,
            None => peek(io::stdin().lock())?,
        };
        let content: Box<dyn Read> = if first.starts_with(GZIP_MAGIC) {
            let stored = BufReader::with_capacity(READ_BYTES, stored);
            Box::new(GzipReader(MultiGzDecoder::new(stored)))
        } else {
            stored
        };
        let (first, mut content) = peek(Bounded::new(content, max_bytes, move || {
            too_large(max_bytes)
        }))?;
        if first.starts_with(ZIP_MAGIC) || first == OLE_MAGIC {
            // A zip archive has its directory at the end.
            let mut workbook = tempfile::tempfile()?;
            io::copy(&mut content, &mut workbook)?;
            workbook.rewind()?;
            return Ok(SourceContent::Workbook(workbook));
        }
        let (guessed, text) = as_utf8(&first, content, options.encoding)?;
        let (begin, content) = peek(text)?;
        let begin = begin.trim_ascii_start();
        if let Some(message) =
            foreign_format(|_, first| !first.is_empty() && begin.starts_with(first))
        {
            return Err(io::Error::other(message));
        }
        if self.format == Some(FileFormat::Xlsx) {
            let message = "it is not a workbook (.xlsx); save it as one, or set its format, such as `--format csv`";
            return Err(io::Error::other(message));
        }
        let format = self.format.unwrap_or(match begin.first() {
            Some(b'{') => FileFormat::Jsonl,
            Some(b'[') => FileFormat::Json,
            _ => FileFormat::Csv,
        });
        Ok(SourceContent::Text {
            format,
            guessed,
            content,
        })
    }
}

/// The content of a source.
pub(in crate::import) enum SourceContent {
    Text {
        /// The format, which is never [`FileFormat::Xlsx`].
        format: FileFormat,
        /// The encoding, if it was guessed.
        guessed: Option<&'static Encoding>,
        content: Box<dyn Read>,
    },
    /// A copy of a workbook.
    Workbook(File),
}

/// Returns the parts of a file name before and after its first dot, in lower case and without `.gz`.
fn stem_and_ending(path: &Path) -> Option<(String, String)> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    let (stem, ending) = name.strip_suffix(".gz").unwrap_or(&name).split_once('.')?;
    Some((stem.trim().to_owned(), ending.to_owned()))
}

/// Parses the kind of rows from a file or sheet name.
pub(in crate::import) fn kind_from_name(name: &str) -> Option<RowKind> {
    name.trim().to_lowercase().parse().ok()
}

/// The formats that are not read: their names, file name extensions, first bytes (empty if other formats may have
/// them), and what makes a file readable.
const FOREIGN_FORMATS: [(&str, &str, &[u8], &str); 9] = [
    ("a binary workbook", "xlsb", b"", SAVE_WORKBOOK),
    ("a Numbers table", "fods numbers", b"", SAVE_WORKBOOK),
    (
        "HTML or XML",
        "html htm xml rss atom",
        b"<",
        "open it in a spreadsheet program, and save it as .xlsx",
    ),
    ("a text document", "doc docx odt rtf", b"{\\rtf", COPY_TABLE),
    ("a PDF document", "pdf", b"%PDF", COPY_TABLE),
    (
        "a calendar (.ics)",
        "ics",
        b"BEGIN:VC",
        "export it as CSV, with a line for each event",
    ),
    (
        "YAML",
        "yaml yml",
        b"",
        "convert it to JSON: `yq -o=json . IN.yaml > OUT.json`",
    ),
    (
        "Parquet",
        "parquet",
        b"PAR1",
        "convert it to CSV: `duckdb -c \"COPY 'IN.parquet' TO 'OUT.csv'\"`",
    ),
    (
        "an archive",
        "zip tar tgz 7z rar",
        b"",
        "unpack it, and import its files",
    ),
];

/// Returns the message for a format that is not read. `is_it` returns true for its file name extensions and its first
/// bytes.
fn foreign_format(is_it: impl Fn(&str, &[u8]) -> bool) -> Option<String> {
    let mut formats = FOREIGN_FORMATS.into_iter();
    let found = formats.find(|(_, endings, first, _)| is_it(endings, first));
    found.map(|(format, _, _, remedy)| format!("it is {format}, which is not read; {remedy}"))
}

const SAVE_WORKBOOK: &str = "save it as .xlsx without a password, or as CSV in UTF-8";
const COPY_TABLE: &str = "copy its table to a spreadsheet, and save that as .xlsx";

/// The first bytes of a zip archive.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

/// The first bytes of a compound file: a workbook from before Excel 2007, or one with a password.
pub(super) const OLE_MAGIC: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// The size of reads from a file.
const READ_BYTES: usize = 1 << 17;

/// Returns the first bytes, as many as the longest magic has, and a reader of the whole content.
fn peek<'p>(mut from: impl Read + 'p) -> io::Result<(Vec<u8>, Box<dyn Read + 'p>)> {
    let mut first = Vec::new();
    from.by_ref()
        .take(OLE_MAGIC.len() as u64)
        .read_to_end(&mut first)?;
    let whole = Cursor::new(first.clone()).chain(from);
    Ok((first, Box::new(whole)))
}

/// Decompresses gzip. Damaged data gets its own error message.
struct GzipReader<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0
            .read(buffer)
            .map_err(|error| match error.raw_os_error() {
                Some(_) => error,
                None => io::Error::new(error.kind(), format!("it is damaged gzip: {error}")),
            })
    }
}

/// The error of a file that has more than [`Bounds::file_bytes`](super::options::Bounds::file_bytes). Only it has the
/// kind [`io::ErrorKind::FileTooLarge`].
pub(super) fn too_large(max_bytes: u64) -> io::Error {
    let message = format!(
        "the file is too large: it has more than {max_bytes} bytes, decompressed; split it"
    );
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

/// Returns a text as UTF-8 without its byte-order mark, and its encoding if it is guessed. Windows programs call UTF-16
/// "Unicode". `first` contains its first bytes. Text without a mark is unchanged, unless it is not UTF-8 and `other` is
/// an encoding.
fn as_utf8<'p>(
    first: &[u8],
    mut content: Box<dyn Read + 'p>,
    other: TextEncoding,
) -> io::Result<(Option<&'static Encoding>, Box<dyn Read + 'p>)> {
    let marked = Encoding::for_bom(first);
    match (marked, other) {
        (None, TextEncoding::Refused) => return Ok((None, content)),
        (Some((encoding, mark_len)), _) if encoding == UTF_8 => {
            io::copy(&mut content.by_ref().take(mark_len as u64), &mut io::sink())?;
            return Ok((None, content));
        }
        _ => {}
    }
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes)?;
    let mut guessed = None;
    let encoding = match (marked, other) {
        (Some((encoding, _)), _) => encoding,
        (None, TextEncoding::Named(encoding)) if str::from_utf8(&bytes).is_err() => encoding,
        (None, TextEncoding::Guessed) if str::from_utf8(&bytes).is_err() => {
            guessed.insert(guess_encoding(&bytes))
        }
        _ => UTF_8,
    };
    let (text, is_damaged) = encoding.decode_with_bom_removal(&bytes);
    if is_damaged {
        let before = text.split('\u{fffd}').next().unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        return Err(io::Error::other(format!(
            "line {line} contains damaged characters ({}); correct it, and save the file as UTF-8",
            encoding.name()
        )));
    }
    let text = Cursor::new(text.into_owned().into_bytes());
    Ok((guessed, Box::new(text)))
}

/// Returns the probable encoding of a text that is not UTF-8.
pub(in crate::import) fn guess_encoding(text: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(text, true);
    detector.guess(None, Utf8Detection::Deny)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::import::read::options::Bounds;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn utf_16(text: &str) -> Vec<u8> {
        format!("\u{feff}{text}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect()
    }

    #[test]
    fn file_names_give_the_kind_of_rows_and_the_format() {
        let cases = outcomes![
            "conferences.jsonl" => Some((Some(RowKind::Conferences), FileFormat::Jsonl));
            "Conferences.CSV" => Some((Some(RowKind::Conferences), FileFormat::Csv));
            "tags.tsv" "tags.csv.gz" => Some((Some(RowKind::Tags), FileFormat::Csv));
            "medfeed.xlsx" => Some((None, FileFormat::Xlsx));
            "journals.xlsx" => Some((Some(RowKind::Journals), FileFormat::Xlsx));
            "a/b.c/journals.csv" => Some((Some(RowKind::Journals), FileFormat::Csv));
            "organizations.jsonl.gz" => Some((Some(RowKind::Organizations), FileFormat::Jsonl));
            "conferences.json" => Some((Some(RowKind::Conferences), FileFormat::Json));
            "tags.json.gz" => Some((Some(RowKind::Tags), FileFormat::Json));
            "conferences.gz" "conferences" "conferences-2026.csv" "conferences.csv.bak"
            "medfeed.csv" "medfeed.jsonl.gz" "README.md" ".csv" => None;
        ];
        for (path, expected) in cases {
            let found = Source::from_folder(Path::new(path)).filter(|source| !source.is_skipped);
            let found = found.map(|source| (source.kind, source.format));
            assert_eq!(
                found,
                expected.map(|(kind, format)| (kind, Some(format))),
                "{path}"
            );
            let from_file = Source::from_file(Path::new(path), SourceOptions::default()).is_ok();
            assert_eq!(from_file, expected.is_some(), "{path}");
        }
    }

    #[test]
    fn folders_are_read_for_the_known_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let find = || Source::find(std::slice::from_ref(&path), SourceOptions::default());
        fs::write(path.join("README.md"), "x").unwrap();
        fs::write(path.join("journals (1).csv"), "id\n").unwrap();
        fs::create_dir(path.join("tags.csv")).unwrap();
        let text = find().unwrap_err().to_string();
        assert!(text.contains("contains nothing to import"));
        for name in words![
            "journals.csv.gz" "conferences.csv" "conferences.jsonl" "organizations.csv" "tags.json"
        ] {
            fs::write(path.join(name), "").unwrap();
        }
        let sources = find().unwrap();
        let names = sources.iter();
        let names: Vec<String> = names.map(|source| source.name.to_string()).collect();
        let expected = words![
            "organizations.csv" "tags.json" "conferences.csv" "conferences.jsonl" "journals.csv.gz"
        ];
        let skipped = "journals (1).csv";
        let expected: Vec<_> = [skipped]
            .iter()
            .chain(&expected)
            .map(|name| path.join(name).display().to_string())
            .collect();
        assert_eq!(names, expected);
        let rows =
            crate::import::read::read_sources(&sources[..1], &ReadOptions::default()).unwrap();
        assert!(
            rows.warnings.kept()[0]
                .to_string()
                .contains("skipped, since its name is none of `conferences`"),
            "{rows:?}"
        );
    }

    #[test]
    fn unreadable_sources_are_refused_with_the_reason() {
        let options = SourceOptions {
            kind: Some(RowKind::Tags),
            format: None,
        };
        let none = SourceOptions::default();
        let cases = cases![
            vec!["/nonexistent/tags.csv"], none, "cannot read /nonexistent/tags.csv: No such file";
            vec!["Cargo.toml"], none, "Cargo.toml: the file name does not say";
            vec!["-"], none, "`-` (standard input) needs --dataset";
            vec!["src"], options, "src is a folder";
        ];
        for (paths, standard_input, expected) in cases {
            let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
            let error = Source::find(&paths, standard_input)
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    fn read(source: &Source, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let bounds = Bounds {
            file_bytes: max_bytes,
            ..Bounds::default()
        };
        match source.open(&ReadOptions {
            bounds,
            ..ReadOptions::default()
        })? {
            SourceContent::Text { mut content, .. } => content.read_to_end(&mut read).map(|_| read),
            SourceContent::Workbook(_) => panic!("it is a text"),
        }
    }

    #[test]
    fn content_is_decompressed_and_loses_its_mark() {
        let two_members = [gzip("\u{feff}a"), gzip("b")].concat();
        let cut = gzip("hello hello hello")[..20].to_vec();
        let cases: [(&str, Vec<u8>, Option<&str>); 10] = [
            ("tags.csv", utf_16("aé"), Some("aé")),
            ("tags.csv", b"<html>".to_vec(), None),
            ("tags.csv", b"ab".to_vec(), Some("ab")),
            ("tags.csv", "\u{feff}ab".into(), Some("ab")),
            ("tags.csv.gz", two_members.clone(), Some("ab")),
            ("tags.jsonl", two_members, Some("ab")),
            ("tags.csv", vec![], Some("")),
            ("tags.csv.gz", vec![], Some("")),
            // Browsers decompress files, and keep their names.
            ("tags.csv.gz", b"plain".to_vec(), Some("plain")),
            ("tags.csv.gz", cut, None),
        ];
        let folder = tempfile::tempdir().unwrap();
        for (name, stored, expected) in cases {
            let path = folder.path().join(name);
            fs::write(&path, &stored).unwrap();
            let content = read(
                &Source::from_file(&path, SourceOptions::default()).unwrap(),
                u64::MAX,
            );
            assert_eq!(
                content.ok().as_deref(),
                expected.map(str::as_bytes),
                "{name} {stored:?}"
            );
        }
    }

    #[test]
    fn the_content_shows_the_format_behind_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.txt");
        let cases = [
            ("{}", Some(FileFormat::Jsonl)),
            ("\n [", Some(FileFormat::Json)),
            ("id", Some(FileFormat::Csv)),
            ("<html>", None),
        ];
        for (text, expected) in cases {
            for stored in [text.into(), format!("\u{feff}{text}").into(), utf_16(text)] {
                fs::write(&path, stored).unwrap();
                let options = SourceOptions {
                    kind: Some(RowKind::Tags),
                    format: None,
                };
                let found = match Source::from_file(&path, options)
                    .unwrap()
                    .open(&ReadOptions::default())
                {
                    Ok(SourceContent::Text { format, .. }) => Some(format),
                    _ => None,
                };
                assert_eq!(found, expected, "{text}");
            }
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let damaged = [gzip("abcd"), b"more".to_vec()].concat();
        let cases = cases![
            b"abcd".to_vec(), 4, "abcd";
            b"abcd".to_vec(), 3, "the file is too large: it has more than 3 bytes, decompressed";
            gzip("abcd"), 4, "abcd";
            gzip("abcd"), 3, "the file is too large: it has more than 3 bytes, decompressed";
            gzip(&"\0".repeat(1 << 24)), 1 << 20, "has more than 1048576 bytes";
            damaged.clone(), 3, "has more than 3 bytes";
            damaged, 5, "it is damaged gzip";
            vec![], 0, "";
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tags.jsonl");
        for (stored, max_bytes, expected) in cases {
            fs::write(&path, &stored).unwrap();
            let outcome = match read(
                &Source::from_file(&path, SourceOptions::default()).unwrap(),
                max_bytes,
            ) {
                Ok(content) => String::from_utf8(content).unwrap(),
                Err(error) => error.to_string(),
            };
            assert!(
                outcome.contains(expected) && outcome.is_empty() == expected.is_empty(),
                "{max_bytes} {stored:.40?}: {outcome}"
            );
        }
    }

    #[test]
    fn texts_become_utf8() {
        let unit = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>()
        };
        let marked = |bytes: &[u8]| [&[0xff, 0xfe][..], bytes].concat();
        let big: Vec<u8> = [0xfe, 0xff]
            .into_iter()
            .chain("aé".encode_utf16().flat_map(u16::to_be_bytes))
            .collect();
        type Case<'a> = (&'a [u8], Result<&'a [u8], &'a str>);
        let cases: [Case<'_>; 8] = cases![
            b"", Ok(b"");
            b"a\xff", Ok(b"a\xff");
            b"\xef\xbb\xbfa", Ok(b"a");
            &marked(b""), Ok(b"");
            &marked(&unit("aé𝄞")), Ok("aé𝄞".as_bytes());
            &big, Ok("aé".as_bytes());
            // Half a surrogate pair before a letter, and half a unit at the end.
            &marked(&[b'a', 0, b'\n', 0, 0x34, 0xd8, b'a', 0]), Err("line 2 contains damaged characters");
            &marked(b"a\0b"), Err("line 1 contains damaged characters");
        ];
        for (content, expected) in cases {
            let mut read = Vec::new();
            let outcome = as_utf8(
                &content[..content.len().min(4)],
                Box::new(content),
                TextEncoding::Refused,
            )
            .and_then(|(_, mut text)| text.read_to_end(&mut read));
            match (outcome, expected) {
                (Ok(_), Ok(expected)) => assert_eq!(read, expected, "{content:?}"),
                (Err(error), Err(expected)) => assert!(
                    error.to_string().starts_with(expected),
                    "{content:?}: {error}"
                ),
                (outcome, _) => panic!("{content:?}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn a_recipe_names_an_encoding() {
        let encoding = TextEncoding::Named(encoding_rs::WINDOWS_1252);
        // A text that is UTF-8 is read as UTF-8.
        for (stored, expected) in [
            (&b"Soci\xe9t\xe9"[..], "Société"),
            ("Société".as_bytes(), "Société"),
            (b"A", "A"),
        ] {
            let mut read = String::new();
            as_utf8(&stored[..1], Box::new(stored), encoding)
                .unwrap()
                .1
                .read_to_string(&mut read)
                .unwrap();
            assert_eq!(read, expected);
        }
    }
}
