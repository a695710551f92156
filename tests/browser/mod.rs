//! The explorer in a real browser, where there is one: headless Chromium, served by the real program.
//!
//! `browser` drives it; the tests are laid out as the page's readers: `demo` (who tries it out), `explorer` (who pastes a
//! key), `forms` (phones and desktops, light and dark, by keyboard and to a screen reader).

mod browser;
mod demo;
mod explorer;
mod forms;

use self::browser::Browser;
use crate::process::site::{Server, Site};

/// A demo, and its page in a browser.
fn open_demo(test: &str, options: &[&str]) -> Option<(Browser, Server, Site)> {
    let browser = Browser::start(test)?;
    let site = Site::new();
    let arguments = [&["demo", "--listen", "127.0.0.1:0"], options].concat();
    let server = site.start(site.command(arguments));
    browser.go(&format!("http://{}/", server.address));
    browser.wait_for("//h1[.='Two licenses, side by side']");
    Some((browser, server, site))
}
