//! Copies the code by which requests wait, with shuttle's locks in the place of the standard library's.

use std::path::Path;
use std::{env, fs};

fn main() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/serve/connection");
    let to = env::var("OUT_DIR").expect("cargo sets it");
    for name in ["limits.rs", "long_polls.rs"] {
        let source = from.join(name);
        println!("cargo::rerun-if-changed={}", source.display());
        let text = fs::read_to_string(&source).expect("the code is there");
        assert_eq!(text.matches("use std::sync::{").count(), 1, "{name}: one line imports locks");
        // Included code has no comments of a module.
        let text = text.replace("use std::sync::{", "use shuttle::sync::{").replace("//!", "//");
        fs::write(Path::new(&to).join(name), text).expect("the folder can be written");
    }
}
