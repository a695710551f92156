//! The explorer at a server that redirects its requests to another host, which must not see the key.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::chromium::Browser;
use super::paste_key;
use crate::process::site::{Site, conferences_of_version};

/// Listens on an address, and answers each request: `answer` gets its head.
fn answering(address: &str, answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|length| length > 2) {}
            // A browser may open a connection and leave.
            if !head.is_empty() {
                let _ = reader.get_mut().write_all(&answer(&head));
            }
        }
    });
    address
}

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
    let (asked, seen) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
    let other = answering("127.0.0.2", {
        let seen = Arc::clone(&seen);
        move |head| {
            seen.lock().unwrap().push(head.to_owned());
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: *, \
              authorization\r\nContent-Length: 2\r\n\r\n{}"
                .to_vec()
        }
    });
    let (address, noted) = (server.address, Arc::clone(&asked));
    let first = answering("127.0.0.1", move |head| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        if !path.starts_with("/v1/") {
            return forward(address, head);
        }
        noted.lock().unwrap().push(head.to_owned());
        let location = format!("Location: http://{other}{path}");
        format!("HTTP/1.1 302 Found\r\nConnection: close\r\n{location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    });
    browser.go(&format!("http://{first}/"));
    paste_key(&browser, &key);
    browser.wait_for("//p[@id='key-error' and contains(., 'redirects to another address')]");
    assert!(asked.lock().unwrap().iter().any(|head| head.contains(&key)), "the first host was asked with the key");
    let seen = seen.lock().unwrap();
    assert!(seen.is_empty(), "the second host was asked: {seen:?}");
}
