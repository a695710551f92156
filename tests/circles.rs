//! Files do not import each other in circles, directly or through other files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::layers::{all_sources, code};

/// The rooms of the store, with the rooms that each one uses. The check uses nothing that it checks.
const ROOMS: [(&str, &[&str]); 12] = [
    ("error", &[]),
    ("panics", &["error"]),
    ("format", &["error"]),
    ("write_tx", &["error", "format"]),
    ("read", &["error", "panics", "format"]),
    (
        "file",
        &["error", "panics", "format", "write_tx", "read", "check"],
    ),
    ("write", &["error", "format", "write_tx", "read", "file"]),
    ("check", &["error", "panics", "format", "file"]),
    (
        "upgrade",
        &[
            "error", "panics", "format", "write_tx", "read", "file", "write",
        ],
    ),
    (
        "restore",
        &[
            "error", "panics", "format", "write_tx", "read", "file", "upgrade",
        ],
    ),
    (
        "replication",
        &[
            "error", "panics", "format", "write_tx", "read", "file", "write", "check", "upgrade",
            "restore", "tests",
        ],
    ),
    (
        "tests",
        &[
            "error", "format", "read", "file", "write", "check", "upgrade", "restore",
        ],
    ),
];

/// The segments of a path such as `store::file`, from the root of the crate.
type Names = Vec<String>;

/// The files by the modules that they are.
struct Files(BTreeMap<Names, File>);

struct File {
    /// The paths of this crate in the file, each with the name that it gets.
    paths: Vec<(String, Names)>,
    /// Whether it is a `mod.rs` that only declares modules and re-exports names. Then it does not count as their user.
    only_lists: bool,
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Reads a path, or a group of paths, that continues `path`. Adds each path with the name that it gets. Returns the
/// rest.
fn expand<'t>(text: &'t str, mut path: Names, paths: &mut Vec<(String, Names)>) -> &'t str {
    if let Some(group) = text.strip_prefix('{') {
        let mut rest = group.trim_start();
        while !rest.starts_with('}') {
            rest = expand(rest, path.clone(), paths).trim_start_matches([',', '*', ' ', '\n']);
        }
        return &rest[1..];
    }
    let (word, rest) = text.split_at(text.find(|letter| !is_word(letter)).unwrap_or(text.len()));
    match word {
        "super" => drop(path.pop()),
        "self" | "" => {}
        _ => path.push(word.to_owned()),
    }
    if let Some(rest) = rest.strip_prefix("::") {
        return expand(rest, path, paths);
    }
    let (name, rest) = match rest.strip_prefix(" as ") {
        Some(rest) => rest.split_at(rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())),
        None => (path.last().map_or("", String::as_str), rest),
    };
    paths.push((name.to_owned(), path.clone()));
    rest
}

/// The paths of this crate in the code of a module.
fn paths(module: &Names, code: &str, is_file: impl Fn(&Names) -> bool) -> Vec<(String, Names)> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("::") {
        let start = code[..at]
            .rfind(|letter| !is_word(letter))
            .map_or(0, |before| before + 1);
        // A visibility such as `pub(in crate::store)` names a module without using it.
        if code[..start].ends_with([':', '$']) || code[..start].ends_with("pub(in ") {
            continue;
        }
        let word = &code[start..at];
        let child = [&module[..], &[word.to_owned()]].concat();
        let base = match word {
            "crate" => Names::new(),
            "self" => module.clone(),
            "super" => module[..module.len() - 1].to_vec(),
            _ if is_file(&child) => child,
            _ => continue,
        };
        expand(&code[at + 2..], base, &mut paths);
    }
    paths
}

impl Files {
    fn new<P: AsRef<Path>>(sources: impl IntoIterator<Item = (P, String)>) -> Files {
        let module = |path: &Path| -> Names {
            let path = path.with_extension("");
            let names = path.iter().map(|name| name.to_str().unwrap().to_owned());
            names
                .filter(|name| name != "mod" && name != "lib")
                .collect()
        };
        let own = |text: &str| code(text.split("#[cfg(test)]\nmod tests").next().unwrap());
        let codes: BTreeMap<Names, (bool, String)> = sources
            .into_iter()
            .map(|(path, text)| {
                (
                    module(path.as_ref()),
                    (path.as_ref().ends_with("mod.rs"), own(&text)),
                )
            })
            .collect();
        let is_list = |statement: &str| {
            let word = statement
                .split_whitespace()
                .find(|word| !word.starts_with("pub"));
            word.is_none_or(|word| word == "mod" || word == "use")
        };
        let file = |(module, (is_mod, code)): (&Names, &(bool, String))| {
            let paths = paths(module, code, |child| codes.contains_key(child));
            (
                module.clone(),
                File {
                    paths,
                    only_lists: *is_mod && code.split(';').all(is_list),
                },
            )
        };
        Files(codes.iter().map(file).collect())
    }

    /// The module whose file defines the item of a path, with re-exports resolved.
    fn resolve(&self, path: &[String]) -> Names {
        let length = (0..=path.len())
            .rfind(|length| self.0.contains_key(&path[..*length]))
            .unwrap_or(0);
        let module = path[..length].to_vec();
        let Some(name) = path.get(length).filter(|_| length > 0) else {
            return module;
        };
        let passed_on = self.0[&module]
            .paths
            .iter()
            .find(|(passed, to)| passed == name && !path.starts_with(to));
        passed_on.map_or(module, |(_, to)| self.resolve(to))
    }

    /// The files that a file uses.
    fn used_by(&self, module: &Names) -> BTreeSet<Names> {
        let File { paths, only_lists } = &self.0[module];
        let paths = paths.iter().filter(|_| !only_lists);
        let mut used: BTreeSet<Names> = paths.map(|(_, path)| self.resolve(path)).collect();
        used.remove(module);
        used.remove(&Names::new());
        used
    }

    /// The modules that use themselves, directly or through others, with the modules that they use so.
    fn circles(&self) -> Vec<String> {
        let edges: BTreeMap<&Names, BTreeSet<Names>> = self
            .0
            .keys()
            .map(|module| (module, self.used_by(module)))
            .collect();
        let reached = |start: &Names| {
            let (mut reached, mut open) = (BTreeSet::new(), vec![start.clone()]);
            while let Some(module) = open.pop() {
                open.extend(
                    edges[&module]
                        .iter()
                        .filter(|next| reached.insert((*next).clone()))
                        .cloned(),
                );
            }
            reached
        };
        let all: BTreeMap<&Names, BTreeSet<Names>> = self
            .0
            .keys()
            .map(|module| (module, reached(module)))
            .collect();
        let in_circle = all
            .iter()
            .filter(|(module, reached)| reached.contains(**module));
        let told = in_circle.map(|(module, reached)| {
            let others = edges[*module]
                .iter()
                .filter(|next| all[next].contains(*module) && reached.contains(*next));
            format!(
                "{} -> {}",
                module.join("::"),
                others
                    .map(|other| other.join("::"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        });
        told.collect()
    }
}

#[test]
fn no_files_use_each_other() {
    let sources = all_sources()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("tests.rs"));
    let circles = Files::new(sources).circles();
    assert!(
        circles.is_empty(),
        "files that use each other in a circle:\n{}",
        circles.join("\n")
    );
}

#[test]
fn rooms_of_the_store_use_only_lower_rooms() {
    let files = Files::new(all_sources());
    for module in files
        .0
        .keys()
        .filter(|module| module.len() > 1 && module[0] == "store")
    {
        let (_, allowed) = ROOMS
            .iter()
            .find(|(room, _)| *room == module[1])
            .unwrap_or_else(|| panic!("{module:?}"));
        for used in files
            .used_by(module)
            .iter()
            .filter(|used| used[0] == "store" && used.len() > 1)
        {
            let is_allowed = used[1] == module[1] || allowed.contains(&used[1].as_str());
            assert!(is_allowed, "{} uses {}", module.join("::"), used.join("::"));
        }
    }
}

#[test]
fn circles_of_modules_are_found_in_each_form_of_use() {
    const LIST: (&str, &str) = (
        "a/mod.rs",
        "pub mod x;\nmod y;\npub use x::X;\npub use y::{Y as Z, more};",
    );
    /// A name, the files with their text, and the number of circles.
    type Case = (&'static str, &'static [(&'static str, &'static str)], usize);
    let cases: [Case; 8] = [
        (
            "down only",
            &[
                LIST,
                ("a/x.rs", "use super::Z;"),
                ("a/y.rs", "fn more() {}"),
            ],
            0,
        ),
        (
            "by re-exports",
            &[
                LIST,
                ("a/x.rs", "use crate::a::Z;"),
                ("a/y.rs", "use crate::a::X;"),
            ],
            2,
        ),
        (
            "in groups",
            &[
                LIST,
                ("a/x.rs", "use super::{y::{self}};"),
                ("a/y.rs", "use super::x::*;"),
            ],
            2,
        ),
        (
            "inline",
            &[
                LIST,
                ("a/x.rs", "f(super::y::Y)"),
                ("a/y.rs", "type X = crate::a::X;"),
            ],
            2,
        ),
        (
            "with the parent",
            &[
                ("a/mod.rs", "mod x;\nuse x::X; fn f() {}"),
                ("a/x.rs", "use super::f;"),
            ],
            2,
        ),
        (
            "of three",
            &[
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "use crate::c::C;"),
                ("c.rs", "use crate::a::A;"),
            ],
            3,
        ),
        (
            "in a comment",
            &[("a.rs", "use crate::b::B;"), ("b.rs", "// crate::a::A")],
            0,
        ),
        (
            "in tests",
            &[
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }"),
            ],
            0,
        ),
    ];
    for (what, sources, expected) in cases {
        let circles = Files::new(
            sources
                .iter()
                .map(|(path, text)| (*path, (*text).to_owned())),
        )
        .circles();
        assert_eq!(circles.len(), expected, "{what}: {circles:?}");
    }
}
