//! The explorer at a server that redirects its requests to another host, which must not see the key.

use super::chromium::Browser;
use super::paste_key;
use crate::process::client::{Answer, Client};
use crate::process::scripted::{Asked, Reply, Scripted};
use crate::process::site::Site;

/// The reply that passes an answer on.
fn forwarded(answer: &Answer) -> Reply {
    let of_connection = ["connection", "content-length", "transfer-encoding"];
    let headers = answer.headers.iter();
    let headers = headers.filter(|(name, _)| !of_connection.contains(&name.as_str()));
    headers.fold(
        Reply::new(answer.status, answer.body.clone()),
        |reply, (name, value)| reply.with(name, value),
    )
}

#[test]
fn the_page_sends_its_key_to_no_other_host() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let (site, key) = Site::open(3);
    let server = site.serve();
    let other = Scripted::at("127.0.0.2", |_, _| {
        let reply = Reply::new(200, "{}").with("access-control-allow-origin", "*");
        reply.with("access-control-allow-headers", "*, authorization")
    });
    let (to, mut client) = (other.url(), Client::new(server.address, None));
    let first = Scripted::new(move |asked, _| match asked.target() {
        path if path.starts_with("/v1/") => Reply::redirect(302, &to, asked),
        path => forwarded(&client.get(path)),
    });
    browser.go(&format!("{}/", first.url()));
    paste_key(&browser, &key);
    browser.wait_for("//p[@id='key-error' and contains(., 'redirects to another address')]");
    let bearer = format!("Bearer {key}");
    let has_key = |asked: &Asked| asked.header("authorization") == Some(&bearer);
    assert!(
        first.take().iter().any(has_key),
        "the first host was asked with the key"
    );
    let seen = other.take();
    assert!(seen.is_empty(), "the second host was asked: {seen:?}");
}
