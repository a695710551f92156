//! The scripts of the page, joined into one file.
//!
//! Each script is a module, which Node can load and test alone. [`JOINED`] makes each of them a function that returns its
//! exports, so their names do not meet: `const $parts = (() => { … return {link, count}; })();`. An import becomes
//! `const {link, count} = $parts;`. One file is compressed better than fifty, and is loaded in one request.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use serde_json::Value;

use crate::model::{Joined, country};

/// The name of a script, with its text.
macro_rules! script {
    ($name:literal generated) => {
        ($name, "")
    };
    ($name:literal) => {
        ($name, include_str!(concat!($name, ".js")))
    };
}

macro_rules! scripts {
    ($($name:literal $($generated:ident)?),* $(,)?) => {
        &[("preact", include_str!("vendor/preact.js")), $(script!($name $($generated)?)),*]
    };
}

/// The scripts, in the order in which they are joined: a script imports only earlier ones. Those without a text are
/// generated.
const SCRIPTS: &[(&str, &str)] = scripts![
    "model/load",
    "model/deadlines",
    "model/fold",
    "model/facets",
    "model/order",
    "model/ranges",
    "model/words",
    "model/select",
    "model/question",
    "model/typed",
    "session",
    "api",
    "model/follower",
    "model/kept",
    "model/lists",
    "keep",
    "model/copy",
    "model/json",
    "model/changes",
    "model/cities",
    "model/search",
    "regions" generated,
    "copies",
    "parts",
    "shortlist",
    "model/csv",
    "views/columns",
    "model/calendar",
    "model/files",
    "views/undated",
    "model/xlsx",
    "views/files",
    "views/key",
    "views/shortlist",
    "views/changes",
    "views/demo",
    "views/header",
    "model/suggest",
    "views/year",
    "views/filters",
    "views/held",
    "views/way",
    "views/list",
    "views/developers",
    "views/record",
    "views/help",
    "views/lists",
    "app",
];

/// The scripts as the page loads them.
pub(super) static JOINED: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    for (name, _) in SCRIPTS {
        text.push_str(&as_function(name, &script(name).unwrap_or_default()));
    }
    text
});

/// The text of a script, such as `model/copy`.
pub fn script(name: &str) -> Option<Cow<'static, str>> {
    let (_, text) = SCRIPTS.iter().find(|(known, _)| *known == name)?;
    Some(match name {
        "regions" => regions().into(),
        _ => (*text).into(),
    })
}

/// The names of all scripts.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCRIPTS.iter().map(|(name, _)| *name)
}

/// The variable that holds the exports of a script: `$model_copy` for `../model/copy.js`.
fn variable(path: &str) -> String {
    let name = path.trim_start_matches(['.', '/']).trim_end_matches(".js");
    format!("${}", name.replace('/', "_"))
}

/// A module as a function that returns its exports.
fn as_function(name: &str, module: &str) -> String {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut body = String::with_capacity(module.len());
    let mut exports = Vec::new();
    for line in compact(module).lines() {
        if let Some((names, path)) = imported(line) {
            let from = match path.strip_prefix("./") {
                Some(sibling) if !folder.is_empty() => variable(&format!("{folder}/{sibling}")),
                _ => variable(path),
            };
            let names = names.replace(" as ", ": ");
            let _ = writeln!(body, "const {{{names}}} = {from};");
        } else if let Some(declared) = line.strip_prefix("export ") {
            exports.extend(declared_name(declared).map(str::to_owned));
            body.push_str(declared);
            body.push('\n');
        } else {
            body.push_str(line);
            body.push('\n');
        }
    }
    // The library has one list of its exports, at its end.
    if let Some((code, list)) = body.rsplit_once("export{") {
        let list = list.trim_end().trim_end_matches("};");
        exports = list.split(',').map(renamed).collect();
        body = code.to_owned();
    }
    let exports = exports.join(",");
    format!(
        "const {} = (() => {{\n{body}return {{{exports}}};\n}})();\n",
        variable(name)
    )
}

/// The names and the path of an import.
fn imported(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("import {")?;
    let (names, path) = rest.split_once("} from '")?;
    Some((names, path.strip_suffix("';")?))
}

/// The name that a declaration declares: `count` of `const count = …`.
fn declared_name(declaration: &str) -> Option<&str> {
    let is_keyword =
        |word: &&str| ["const", "let", "async", "function", "function*", "class"].contains(word);
    let word = declaration.split(' ').find(|word| !is_keyword(word))?;
    word.split(['(', ';', ',']).next()
}

/// `html:fe` of `fe as html`.
fn renamed(export: &str) -> String {
    match export.split_once(" as ") {
        Some((name, known)) => format!("{known}:{name}"),
        None => export.to_owned(),
    }
}

/// A script without indentation, empty lines, and comments on lines of their own, which are a sixth of the scripts.
fn compact(script: &str) -> String {
    let mut text = String::with_capacity(script.len());
    let mut is_comment = false;
    for line in script.lines().map(str::trim_start) {
        is_comment |= line.starts_with("/**");
        if !is_comment && !line.starts_with("//") && !line.is_empty() {
            text.push_str(line);
            text.push('\n');
        }
        is_comment &= !line.ends_with("*/");
    }
    text
}

/// A script with the countries of each region and their folded aliases: `Spain,espana|Sweden,sverige`.
fn regions() -> String {
    let regions = country::REGIONS
        .into_iter()
        .map(|(region, countries)| (region, countries.iter().map(words).joined("|")));
    format!("export const REGIONS = {};\n", regions.collect::<Value>())
}

/// The name of a country, then its folded aliases, without long ones and those that are prefixes of the name.
fn words(country: &&'static str) -> String {
    const MAX_ALIAS: usize = 21;
    let name = country.to_lowercase();
    let aliases = country::aliases(country)
        .filter(|alias| alias.len() <= MAX_ALIAS && !name.starts_with(*alias));
    std::iter::once(*country).chain(aliases).joined(",")
}

#[cfg(test)]
mod tests {
    use crate::model::{Dataset, ValueKind};

    use super::*;

    #[test]
    fn modules_are_joined_without_comments_and_empty_lines() {
        let cases = cases![
            "// a\n\tb; // c\n", "b; // c\nreturn {};";
            "/** a */\n/**\n * b\n\t\t*/\n\nc", "c\nreturn {};";
            "\tx('//');\n\n\ty", "x('//');\ny\nreturn {};";
            "import {a, b as c} from '../model/copy.js';", "const {a, b: c} = $model_copy;\nreturn {};";
            "import {d} from './way.js';", "const {d} = $views_way;\nreturn {};";
            "export const e = 1, x = 2;\nexport async function f() {}\nexport class G {}",
                "const e = 1, x = 2;\nasync function f() {}\nclass G {}\nreturn {e,f,G};";
            "var h=1,i=2;export{h as j,i};", "var h=1,i=2;return {j:h,i};";
        ];
        for (module, expected) in cases {
            let expected = format!("const $views_x = (() => {{\n{expected}\n}})();\n");
            assert_eq!(as_function("views/x", module), expected, "{module}");
        }
    }

    /// A script that is imported has run before, and exports each name that is asked of it.
    #[test]
    fn scripts_import_exported_names_of_earlier_ones_alone() {
        let mut count = 0;
        let mut exported: Vec<String> = Vec::new();
        for name in names() {
            let joined = as_function(name, &script(name).unwrap());
            for line in joined.lines() {
                assert!(!line.contains("import("), "{name}: {line}");
                assert!(!line.starts_with("export "), "{name}: {line}");
                let Some((names, from)) = line.split_once("} = $") else {
                    continue;
                };
                let names = names.trim_start_matches("const {");
                for name in names
                    .split(", ")
                    .map(|name| name.split(':').next().unwrap())
                {
                    let wanted = format!("${} {name}", from.trim_end_matches(';'));
                    assert!(exported.contains(&wanted), "{line}");
                    count += 1;
                }
            }
            let mut list = joined.rsplit_once("return {").unwrap().1.split('}');
            let list = list.next().unwrap();
            let names = list.split(',').map(|name| name.split(':').next().unwrap());
            exported.extend(names.map(|known| format!("{} {known}", variable(name))));
        }
        assert!(count > 300, "only {count} names were found");
    }

    #[test]
    fn the_page_and_the_model_allow_fractions_in_the_same_numbers() {
        let fields = || {
            Dataset::ALL
                .into_iter()
                .flat_map(|dataset| &dataset.table().fields)
        };
        let last =
            |field: &'static crate::model::field::Field| field.name.rsplit('.').next().unwrap();
        let mut names = Vec::new();
        for name in fields()
            .filter(|field| field.kind == ValueKind::Number)
            .map(last)
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let list = format!("FRACTIONS = ['{}']", names.join("', '"));
        assert!(include_str!("model/json.js").contains(&list), "{list}");
        for field in fields().filter(|field| field.kind != ValueKind::Number) {
            assert!(
                !names
                    .iter()
                    .any(|name: &&str| field.column.ends_with(*name)),
                "{}",
                field.column
            );
        }
    }

    #[test]
    fn regions_hold_every_known_country_and_its_aliases() {
        let script = regions();
        let mut names = script.split(['"', '|', ',']).collect::<Vec<_>>();
        names.sort_unstable();
        for country in country::COUNTRIES.into_iter().flatten() {
            assert!(names.binary_search(country).is_ok(), "{country}");
        }
        assert!(
            script.contains("|United States,unitedstatesofamerica,us,usa|"),
            "{script}"
        );
        assert!(
            script.contains(r#""Europe":"Albania|Andorra|Austria,osterreich,aut|"#),
            "{script}"
        );
    }

    /// The page loads nothing from other servers, and has no inline scripts or styles. One script may store the key in the
    /// tab, and one may store it on the computer.
    #[test]
    fn scripts_store_and_load_nothing_of_their_own() {
        let storing = [
            ("sessionStorage", "session"),
            ("indexedDB", "keep"),
            ("caches.", "keep"),
            ("serviceWorker", "keep"),
        ];
        let never = words!["http://" "https://" "localStorage" "innerHTML" "style=\"" "eval("]
            .map(|text| (text, ""));
        for name in names() {
            // Names of formats, which nothing requests.
            let text = script(name)
                .unwrap()
                .replace("http://www.w3.org/2000/svg", "")
                .replace("http://schemas.openxmlformats.org/", "");
            for (forbidden, file) in storing.into_iter().chain(never) {
                let is_allowed = name == file || name == "preact";
                assert!(
                    is_allowed || !text.contains(forbidden),
                    "{name} holds {forbidden}"
                );
            }
        }
    }
}
