//! The program's own sources, read as Rust: which paths a file names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// The Rust files of a folder and its folders, by their paths there.
pub fn sources(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = PathBuf::from(entry.file_name());
        if path.is_dir() {
            let below = sources(&path).into_iter();
            found.extend(below.map(|(below, text)| (name.join(below), text)));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    found
}

/// The sources of the program.
pub fn all_sources() -> BTreeMap<PathBuf, String> {
    let found = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(found.len() > 50, "only {} files", found.len());
    found
}

/// The names of a file's module, from `crate` on.
pub fn module_of(path: &Path) -> Names {
    let path = path.with_extension("");
    let names = path.iter().map(|name| name.to_str().unwrap());
    let names = names.filter(|name| !["mod", "lib"].contains(name));
    std::iter::once("crate")
        .chain(names)
        .map(str::to_owned)
        .collect()
}

/// The names of a path, such as `crate`, `store`, `file`.
pub type Names = Vec<String>;

/// A path in a file.
#[derive(Debug)]
pub struct Named {
    /// Its names. Those of this program begin with `crate`, also where `self` or `super` is written.
    pub names: Names,
    /// The name that it gets in the file, which `as` changes. `*` for all names of a module.
    pub alias: String,
}

/// A file, without its modules of tests.
#[derive(Debug)]
pub struct Source {
    /// The paths that it names, also in macros. The path of a visibility counts as none.
    pub paths: Vec<Named>,
    /// Whether it is a `mod.rs` that only declares modules and re-exports names.
    pub is_list: bool,
}

/// Reads a file. Its path begins at `src`.
pub fn read(path: &Path, text: &str) -> Source {
    let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_listed = |item: &Item| match item {
        Item::Mod(item) => item.content.is_none() || is_of_tests(&item.attrs),
        item => matches!(item, Item::Use(_)),
    };
    let is_list = path.ends_with("mod.rs") && file.items.iter().all(is_listed);
    let module = module_of(path);
    let paths = Vec::new();
    let mut reader = Reader { module, paths };
    reader.visit_file(&file);
    Source {
        paths: reader.paths,
        is_list,
    }
}

struct Reader {
    module: Names,
    paths: Vec<Named>,
}

impl Reader {
    fn add(&mut self, names: Names, alias: Option<String>) {
        let mut resolved = match names[0].as_str() {
            "self" | "super" => self.module.clone(),
            _ => Names::new(),
        };
        for name in &names {
            match name.as_str() {
                "super" => drop(resolved.pop()),
                "self" | "*" => {}
                _ => resolved.push(name.clone()),
            }
        }
        let last = resolved.last().cloned().unwrap_or_default();
        self.paths.push(Named {
            alias: alias.unwrap_or(last),
            names: resolved,
        });
    }

    fn add_tree(&mut self, tree: &UseTree, mut before: Names) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(&path.tree, before);
            }
            UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.add(before, None);
            }
            UseTree::Rename(name) => {
                before.push(name.ident.to_string());
                self.add(before, Some(name.rename.to_string()));
            }
            UseTree::Glob(_) => self.add(before, Some("*".to_owned())),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(tree, before.clone());
                }
            }
        }
    }

    /// Adds the paths in a macro, which need not be Rust.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut names = Names::new();
        let mut colons = 0;
        let mut is_after_dollar = false;
        let mut is_of_macro = false;
        for token in tokens {
            match &token {
                TokenTree::Ident(name) if colons == 2 && !names.is_empty() => {
                    names.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' && !names.is_empty() => {
                    colons += 1;
                    continue;
                }
                _ => {}
            }
            self.end_path(&mut names, is_of_macro);
            colons = 0;
            is_of_macro = is_after_dollar;
            is_after_dollar = matches!(&token, TokenTree::Punct(sign) if sign.as_char() == '$');
            match token {
                TokenTree::Ident(name) => names.push(name.to_string()),
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        self.end_path(&mut names, is_of_macro);
    }

    fn end_path(&mut self, names: &mut Names, is_of_macro: bool) {
        let names = std::mem::take(names);
        if names.len() > 1 && !is_of_macro {
            self.add(names, None);
        }
    }
}

impl Visit<'_> for Reader {
    fn visit_item_mod(&mut self, item: &ItemMod) {
        if is_of_tests(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        self.add_tree(&item.tree, Names::new());
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let names = path.segments.iter();
        let names: Names = names.map(|name| name.ident.to_string()).collect();
        if names.len() > 1 {
            self.add(names, None);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &Macro) {
        self.add_tokens(item.tokens.clone());
        self.visit_path(&item.path);
    }

    fn visit_visibility(&mut self, _: &Visibility) {}
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        let condition = attribute.meta.require_list();
        attribute.path().is_ident("cfg")
            && condition.is_ok_and(|list| list.tokens.to_string() == "test")
    };
    attributes.iter().any(is_test)
}

#[test]
fn paths_are_found_in_each_form_of_use() {
    // (a text of the module a::b, its paths)
    let cases: [(&str, &[&str]); 12] = cases![
        "use crate::api::Source;", &["crate::api::Source"];
        "use crate::{a::{X, self}, m as n};", &["crate::a::X", "crate::a", "crate::m n"];
        "use super::{y::{self}};", &["crate::a::y"];
        "use super::x::*;", &["crate::a::x *"];
        "fn f() { crate::view::View::open() }", &["crate::view::View::open"];
        "fn f() { assert!(self::x::Y == super::Z) }", &["crate::a::b::x::Y", "crate::a::Z"];
        "type X = Vec<redb::Database>;", &["redb::Database"];
        "mod c { use super::X; }", &["crate::a::b::X"];
        "macro_rules! m { () => { $crate::model::X } }", &[];
        "pub(in crate::a) fn f() {}", &[];
        "// crate::a\n/// crate::a\nfn f() -> &'static str { \"crate::a\" }", &[];
        "#[cfg(test)] mod tests { use crate::a::A; }", &[];
    ];
    for (text, expected) in cases {
        let told = read(Path::new("a/b.rs"), text)
            .paths
            .into_iter()
            .map(|path| {
                let is_renamed = path.names.last() != Some(&path.alias);
                let alias = if is_renamed {
                    format!(" {}", path.alias)
                } else {
                    String::new()
                };
                path.names.join("::") + &alias
            });
        assert_eq!(told.collect::<Vec<_>>(), expected, "{text}");
    }
}
