//! Files do not import each other in circles, directly or through other files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::sources::{Names, Source, all_sources, module_of, read};

/// The rooms of the store, with the rooms that each one uses. The check uses nothing that it checks.
const ROOMS: [(&str, &[&str]); 12] = cases![
    "error", &[];
    "panics", &["error"];
    "format", &["error"];
    "write_tx", &["error", "format"];
    "read", &["error", "panics", "format"];
    "file", &["error", "panics", "format", "write_tx", "read", "check"];
    "write", &["error", "format", "write_tx", "read", "file"];
    "check", &["error", "panics", "format", "file"];
    "upgrade", &["error", "panics", "format", "write_tx", "read", "file", "write"];
    "restore", &["error", "panics", "format", "write_tx", "read", "file", "upgrade"];
    "replication",
        &["error", "panics", "format", "write_tx", "read", "file", "write", "check", "upgrade", "restore", "tests"];
    "tests", &["error", "format", "read", "file", "write", "check", "upgrade", "restore"];
];

/// The files by the names of their modules.
struct Files(BTreeMap<Names, Source>);

impl Files {
    fn new<P: AsRef<Path>>(sources: impl IntoIterator<Item = (P, String)>) -> Files {
        let file = |(path, text): (P, String)| {
            let path = path.as_ref();
            (module_of(path), read(path, &text))
        };
        Files(sources.into_iter().map(file).collect())
    }

    /// The names of a path in a module from the root of the crate; `None` for other crates' paths.
    fn absolute(&self, module: &Names, names: &Names) -> Option<Names> {
        if names[0] == "crate" {
            return Some(names.clone());
        }
        let child = [&module[..], &names[..1]].concat();
        self.0
            .contains_key(&child)
            .then(|| [&module[..], names].concat())
    }

    /// The module whose file defines the item of a path, with re-exports resolved.
    fn resolve(&self, names: &[String]) -> Names {
        let length = (1..=names.len()).rfind(|length| self.0.contains_key(&names[..*length]));
        let length = length.unwrap_or(1);
        let module = names[..length].to_vec();
        let (Some(source), Some(name)) = (self.0.get(&module), names.get(length)) else {
            return module;
        };
        let mut passed_on = source.paths.iter().filter(|path| path.alias == *name);
        let passed_on = passed_on.find_map(|path| self.absolute(&module, &path.names));
        match passed_on {
            Some(to) if length > 1 && !names.starts_with(&to) => self.resolve(&to),
            _ => module,
        }
    }

    /// The files that a file uses. A list of modules uses none.
    fn used_by(&self, module: &Names) -> BTreeSet<Names> {
        let source = &self.0[module];
        if source.is_list {
            return BTreeSet::new();
        }
        let paths = source.paths.iter();
        let paths = paths.filter_map(|path| self.absolute(module, &path.names));
        paths
            .map(|names| self.resolve(&names))
            .filter(|used| used != module && used.len() > 1)
            .collect()
    }

    /// The modules that a module uses, directly or through others.
    fn reached_from(&self, module: &Names) -> BTreeSet<Names> {
        let mut reached = BTreeSet::new();
        let mut open = vec![module.clone()];
        while let Some(module) = open.pop() {
            let used = self.used_by(&module).into_iter();
            open.extend(used.filter(|next| reached.insert(next.clone())));
        }
        reached
    }

    /// The modules that use themselves, directly or through others, with the modules that they use so.
    fn circles(&self) -> Vec<String> {
        let modules = self.0.keys();
        let reached: BTreeMap<&Names, BTreeSet<Names>> = modules
            .map(|module| (module, self.reached_from(module)))
            .collect();
        let in_circle = self.0.keys();
        let in_circle = in_circle.filter(|module| reached[module].contains(*module));
        let told = in_circle.map(|module| {
            let used = self.used_by(module).into_iter();
            let back = used.filter(|next| reached[next].contains(module));
            let back: Vec<String> = back.map(|next| next.join("::")).collect();
            format!("{} -> {}", module.join("::"), back.join(", "))
        });
        told.collect()
    }
}

#[test]
fn no_files_use_each_other() {
    let is_of_tests = |path: &Path| {
        path.iter()
            .any(|name| name.to_string_lossy().contains("tests"))
    };
    let sources = all_sources().into_iter();
    let sources = sources.filter(|(path, _)| !is_of_tests(path));
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
    let room_of =
        |module: &Names| (module.len() > 2 && module[1] == "store").then(|| module[2].clone());
    for module in files.0.keys() {
        let Some(room) = room_of(module) else {
            continue;
        };
        let (_, allowed) = ROOMS
            .iter()
            .find(|(name, _)| *name == room)
            .unwrap_or_else(|| panic!("{module:?}"));
        for used in files.used_by(module) {
            let is_allowed = room_of(&used)
                .is_none_or(|other| other == room || allowed.contains(&other.as_str()));
            assert!(is_allowed, "{} uses {}", module.join("::"), used.join("::"));
        }
    }
}

#[test]
fn circles_are_found_through_lists_and_other_files() {
    const LIST: (&str, &str) = (
        "a/mod.rs",
        "pub mod x;\nmod y;\npub use x::X;\npub use y::{Y as Z, more};",
    );
    /// A name, the files with their text, and the number of circles.
    type Case = (&'static str, &'static [(&'static str, &'static str)], usize);
    let cases: [Case; 5] = cases![
        "down only", &[LIST, ("a/x.rs", "use super::Z;"), ("a/y.rs", "fn more() {}")], 0;
        "by re-exports", &[LIST, ("a/x.rs", "use crate::a::Z;"), ("a/y.rs", "use crate::a::X;")], 2;
        "in groups", &[LIST, ("a/x.rs", "use super::{y::{self}};"), ("a/y.rs", "use super::x::*;")], 2;
        "with the parent", &[("a/mod.rs", "mod x;\nuse x::X; fn f() {}"), ("a/x.rs", "use super::f;")], 2;
        "of three", &[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")], 3;
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
