//! The explorer at a server that redirects its requests to another host, which must not see the key.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::chromium::Browser;
use super::paste_key;
use crate::process::examples::{recording, redirect};
use crate::process::site::{Site, conferences_of_version};

/// Sends a request to a server, and returns the bytes of its response.
fn forward(server: SocketAddr, head: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).unwrap();
    let head = head.replace("\r\nConnection: keep-alive", "").replacen("\r\n", "\r\nConnection: close\r\n", 1);
    stream.write_all(head.as_bytes()).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    response
}

#[test]
fn the_page_sends_its_key_to_no_other_host() {
    let Some(browser) = Browser::start("the_page_sends_its_key_to_no_other_host") else { return };
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(3, 0));
    let key = site.open_key();
    let server = site.serve();
    let (other, seen) = recording("127.0.0.2", |_| {
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: *, \
          authorization\r\nContent-Length: 2\r\n\r\n{}"
            .to_vec()
    });
    let address = server.address;
    let (first, asked) = recording("127.0.0.1", move |head| match head.split(' ').nth(1) {
        Some(path) if path.starts_with("/v1/") => redirect("302 Found", &other, head),
        _ => forward(address, head),
    });
    browser.go(&format!("{first}/"));
    paste_key(&browser, &key);
    browser.wait_for("//p[@id='key-error' and contains(., 'redirects to another address')]");
    assert!(asked.lock().unwrap().iter().any(|head| head.contains(&key)), "the first host was asked with the key");
    let seen = seen.lock().unwrap();
    assert!(seen.is_empty(), "the second host was asked: {seen:?}");
}
