//! Files do not import each other in circles, directly or through other files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::layers::all_sources;

/// The rooms that each room of the store uses. What checks uses nothing of what it checks.
const ROOMS: [(&str, &[&str]); 12] = [
    ("error", &[]),
    ("panics", &["error"]),
    ("format", &["error"]),
    ("write_tx", &["error", "format"]),
    ("read", &["error", "panics", "format"]),
    ("file", &["error", "panics", "format", "write_tx", "read", "check"]),
    ("write", &["error", "format", "write_tx", "read", "file"]),
    ("check", &["error", "panics", "format", "file"]),
    ("upgrade", &["error", "panics", "format", "write_tx", "read", "file", "write"]),
    ("restore", &["error", "panics", "format", "write_tx", "read", "file", "upgrade"]),
    (
        "replication",
        &["error", "panics", "format", "write_tx", "read", "file", "write", "check", "upgrade", "restore", "tests"],
    ),
    ("tests", &["error", "format", "read", "file", "write", "check", "upgrade", "restore"]),
];

/// A path such as `store::file`, from the root of the crate.
type Module = Vec<String>;

/// The files of a crate, by the modules that they are.
struct Files(BTreeMap<Module, File>);

struct File {
    path: PathBuf,
    tokens: Vec<String>,
    imports: Vec<Import>,
}

/// One name that a `use` brings in.
struct Import {
    name: String,
    path: Module,
}

impl Files {
    fn new(sources: impl IntoIterator<Item = (PathBuf, String)>) -> Files {
        let mut files = BTreeMap::new();
        for (path, text) in sources {
            let file = File { tokens: tokens(&text), imports: Vec::new(), path };
            files.insert(module_of(&file.path), file);
        }
        let mut files = Files(files);
        let modules: Vec<Module> = files.0.keys().cloned().collect();
        for module in modules {
            let mut imports = uses(&files.0[&module].tokens);
            imports.retain_mut(|import| match files.absolute(&module, &import.path) {
                Some(path) => {
                    import.path = path;
                    true
                }
                None => false,
            });
            files.0.get_mut(&module).unwrap().imports = imports;
        }
        files
    }

    /// A path of this crate from its root; `None` for a path of another crate or a local name.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Module> {
        let up = path.iter().take_while(|segment| *segment == "super").count();
        let (base, rest) = match path[0].as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (module, &path[1..]),
            "super" => (&module[..module.len() - up], &path[up..]),
            first if self.0.contains_key(&[module, &[first.to_owned()]].concat()) => (module, path),
            _ => return None,
        };
        Some([base, rest].concat())
    }

    /// The module whose file defines what a path names, re-exports followed, and whether the path names that module itself.
    fn resolve(&self, path: &[String]) -> (Module, bool) {
        let mut module = Module::new();
        for (at, segment) in path.iter().enumerate() {
            let child = [&module[..], std::slice::from_ref(segment)].concat();
            if self.0.contains_key(&child) {
                module = child;
                continue;
            }
            let imported = self.0[&module].imports.iter().find(|import| import.name == *segment);
            return match imported {
                Some(import) if import.path != path[..=at] => {
                    self.resolve(&[&import.path[..], &path[at + 1..]].concat())
                }
                _ => (module, false),
            };
        }
        (module, true)
    }

    /// The files that a file uses.
    fn used_by(&self, module: &Module) -> BTreeSet<Module> {
        let file = &self.0[module];
        if file.only_lists() {
            return BTreeSet::new();
        }
        let mut used = BTreeSet::new();
        let mut names = BTreeMap::new();
        for import in &file.imports {
            let (target, is_module) = self.resolve(&import.path);
            if is_module {
                names.insert(&import.name, target.clone());
            }
            used.insert(target);
        }
        for path in inline_paths(&file.tokens) {
            let path = match names.get(&path[0]) {
                Some(target) => Some([&target[..], &path[1..]].concat()),
                None => self.absolute(module, &path),
            };
            used.extend(path.map(|path| self.resolve(&path).0));
        }
        used.remove(module);
        used.remove(&Module::new());
        used
    }

    /// The circles: for each file that is in one the shortest, from the file that comes first.
    fn circles(&self) -> BTreeSet<Vec<String>> {
        let edges: BTreeMap<&Module, BTreeSet<Module>> = self.0.keys().map(|file| (file, self.used_by(file))).collect();
        let mut circles = BTreeSet::new();
        for start in self.0.keys() {
            let mut came_from: BTreeMap<&Module, &Module> = BTreeMap::new();
            let mut queue = VecDeque::from([start]);
            while let Some(file) = queue.pop_front() {
                for next in &edges[file] {
                    if !came_from.contains_key(next) {
                        came_from.insert(next, file);
                        queue.push_back(next);
                    }
                }
            }
            if !came_from.contains_key(start) {
                continue;
            }
            let mut circle = vec![start];
            while circle.len() == 1 || circle.last() != Some(&start) {
                circle.push(came_from[circle.last().unwrap()]);
            }
            circle.pop();
            circle.reverse();
            let first = circle.iter().enumerate().min_by_key(|(_, file)| **file).unwrap().0;
            circle.rotate_left(first);
            circles.insert(circle.iter().map(|file| self.0[*file].path.display().to_string()).collect());
        }
        circles
    }
}

impl File {
    /// Whether it only declares modules and passes names on: then it is no user of them.
    fn only_lists(&self) -> bool {
        self.path.ends_with("mod.rs")
            && self.tokens.split(|token| token == ";").all(|statement| {
                let word = statement.iter().find(|token| !["pub", "(", ")", "crate", "in"].contains(&token.as_str()));
                word.is_none_or(|word| word == "mod" || word == "use")
            })
    }
}

fn module_of(path: &Path) -> Module {
    let mut module: Module = path.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if module == ["lib"] || module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    module
}

/// The words and marks of a file, without comments, texts and tests.
fn tokens(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            raw.find("\"#").unwrap() + 5
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|letter| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            });
            end.unwrap() + 2
        } else if first == '\'' {
            character(rest).unwrap_or(1)
        } else if rest.starts_with("pub(in ") {
            // A visibility names a module without using it.
            rest.find(')').unwrap()
        } else if first.is_alphanumeric() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(rest[..length].to_owned());
            length
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                tokens.push(rest[..length].to_owned());
            }
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of a character in quotes, unless the quote begins a lifetime.
fn character(text: &str) -> Option<usize> {
    if let Some(escaped) = text.strip_prefix("'\\") {
        let skipped = escaped.chars().next()?.len_utf8();
        return escaped[skipped..].find('\'').map(|end| end + 3 + skipped);
    }
    let letter = text[1..].chars().next()?.len_utf8();
    text[1 + letter..].starts_with('\'').then_some(letter + 2)
}

/// The names that a file's `use` statements bring in, with their paths as written.
fn uses(tokens: &[String]) -> Vec<Import> {
    fn tree(tokens: &[String], mut at: usize, base: &[String], imports: &mut Vec<Import>) -> usize {
        let mut path = base.to_vec();
        let mut name = None;
        loop {
            match tokens[at].as_str() {
                "{" => {
                    at += 1;
                    while tokens[at] != "}" {
                        at = tree(tokens, at, &path, imports);
                        at += usize::from(tokens[at] == ",");
                    }
                    return at + 1;
                }
                "as" => {
                    at += 1;
                    name = Some(tokens[at].clone());
                }
                "," | ";" | "}" => break,
                "::" => {}
                // A group's `self` is what the group is of; a star is all of it.
                "self" if !path.is_empty() => {}
                segment => path.push(segment.to_owned()),
            }
            at += 1;
        }
        let name = name.or_else(|| path.last().cloned()).unwrap();
        path.retain(|segment| segment != "*");
        imports.push(Import { name, path });
        at
    }
    let mut imports = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token == "use" && tokens[at + 1] != "<" {
            tree(tokens, at + 1, &[], &mut imports);
        }
    }
    imports
}

/// The paths outside of `use` statements, as written.
fn inline_paths(tokens: &[String]) -> Vec<Module> {
    let is_word = |token: &String| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut paths = Vec::new();
    let mut in_use = false;
    for (at, token) in tokens.iter().enumerate() {
        in_use = (in_use && token != ";") || (token == "use" && tokens.get(at + 1).is_some_and(|next| next != "<"));
        let continues = at > 0 && (tokens[at - 1] == "::" || tokens[at - 1] == "$");
        if in_use || continues || !is_word(token) || tokens.get(at + 1).is_none_or(|next| next != "::") {
            continue;
        }
        let more =
            tokens[at + 1..].chunks(2).take_while(|pair| pair.len() == 2 && pair[0] == "::" && is_word(&pair[1]));
        paths.push([token.clone()].into_iter().chain(more.map(|pair| pair[1].clone())).collect());
    }
    paths
}

#[test]
fn no_files_use_each_other() {
    let sources = all_sources().into_iter().filter(|(path, _)| !path.ends_with("tests.rs"));
    let circles = Files::new(sources).circles();
    let told: Vec<String> = circles.iter().map(|circle| circle.join(" -> ")).collect();
    assert!(told.is_empty(), "files that use each other in a circle:\n{}", told.join("\n"));
}

#[test]
fn rooms_of_the_store_use_those_below() {
    let files = Files::new(all_sources());
    for module in files.0.keys().filter(|module| module[..].starts_with(&["store".to_owned()]) && module.len() > 1) {
        let (_, allowed) = ROOMS.iter().find(|(room, _)| *room == module[1]).unwrap_or_else(|| panic!("{module:?}"));
        for used in files.used_by(module).iter().filter(|used| used[0] == "store" && used.len() > 1) {
            let is_allowed = used[1] == module[1] || allowed.contains(&used[1].as_str());
            assert!(is_allowed, "{} uses {used:?}", files.0[module].path.display());
        }
    }
}

#[test]
fn circles_are_found() {
    /// A file's path and text.
    type Source = (&'static str, &'static str);
    const LIST: Source = ("a/mod.rs", "pub mod x;\nmod y;\npub use x::X;\npub use y::{Y as Z, more};");
    let cases: [(&str, &[Source], &str); 10] = [
        ("down only", &[LIST, ("a/x.rs", "use super::Z;"), ("a/y.rs", "fn more() {}")], ""),
        ("by re-exports", &[LIST, ("a/x.rs", "use crate::a::Z;"), ("a/y.rs", "use crate::a::X;")], "a/x.rs -> a/y.rs"),
        (
            "in groups",
            &[LIST, ("a/x.rs", "use super::{y::{self}};"), ("a/y.rs", "use super::x::*;")],
            "a/x.rs -> a/y.rs",
        ),
        ("inline", &[LIST, ("a/x.rs", "f(super::y::Y)"), ("a/y.rs", "type X = crate::a::X;")], "a/x.rs -> a/y.rs"),
        (
            "by a module's name",
            &[
                LIST,
                ("b.rs", "fn f() {}"),
                ("a/x.rs", "use crate::b; use crate::a; fn f() { a::more() }"),
                ("a/y.rs", "use crate::a::x; fn f() { x::f() }"),
            ],
            "a/x.rs -> a/y.rs",
        ),
        (
            "with the parent",
            &[("a/mod.rs", "mod x;\nuse x::X; fn more() {}"), ("a/x.rs", "use super::more;")],
            "a/mod.rs -> a/x.rs",
        ),
        (
            "of three",
            &[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")],
            "a.rs -> b.rs -> c.rs",
        ),
        (
            "in a comment",
            &[
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "// use crate::a::A;\n/// [`crate::a`]\nfn f() { '\"'; \"use crate::a;\" }"),
            ],
            "",
        ),
        ("in a test", &[("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }")], ""),
        (
            "another crate's",
            &[
                ("a.rs", "use other::b::B; use crate::b::B as C;"),
                ("b.rs", "use other::a::A; fn f() -> impl Fn() + use<> { a::b }"),
            ],
            "",
        ),
    ];
    for (what, files, expected) in cases {
        let root = ("lib.rs", "pub mod a; pub mod b; pub mod c;");
        let sources = files.iter().chain([&root]).map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        let circles: Vec<String> = Files::new(sources).circles().iter().map(|circle| circle.join(" -> ")).collect();
        assert_eq!(circles.join("; "), expected, "{what}");
    }
}
