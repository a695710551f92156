//! Callers behind a proxy: the header that a server reads, and the peers that it trusts. The forms of both headers are
//! in `fixtures/addresses.txt`.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;

use super::client::Client;
use super::site::Site;

/// The address of the trusted proxy, and one of no proxy.
const PROXY: &str = "127.0.0.1";
const STRANGER: &str = "127.0.0.2";
/// The only address that the key may be used from.
const ALLOWED: &str = "198.51.100.7";

#[test]
fn only_the_chosen_header_of_a_trusted_proxy_names_the_caller() {
    const XFF: (&str, &str) = ("X-Forwarded-For", ALLOWED);
    const FORWARDED: (&str, &str) = ("Forwarded", "for=198.51.100.7");
    let site = Site::with(3);
    let open = site.open_key();
    let narrow = site.key("all", &["--allow-ip", ALLOWED]).1;
    // The options of the server, and the cases: the source of the connection, the sent header, the expected caller.
    type Case = (&'static str, (&'static str, &'static str), &'static str);
    let servers: [(&str, [Case; 3]); 3] = cases![
        "--trusted-proxy 127.0.0.1", [(PROXY, XFF, ALLOWED), (PROXY, FORWARDED, PROXY), (STRANGER, XFF, STRANGER)];
        "--trusted-proxy 127.0.0.1 --forwarded-header forwarded",
            [(PROXY, FORWARDED, ALLOWED), (PROXY, XFF, PROXY), (STRANGER, FORWARDED, STRANGER)];
        "", [(PROXY, XFF, PROXY), (PROXY, FORWARDED, PROXY), (STRANGER, XFF, STRANGER)];
    ];
    for (options, cases) in servers {
        let server = site.serve_with(options);
        for (peer, (name, value), caller) in cases {
            let get = |key: &str| {
                let client =
                    Client::new(server.address, Some(key)).coming_from(peer.parse().unwrap());
                client.with_header(name, value).get("/v1/conferences")
            };
            let answer = get(&narrow);
            let what = format!(
                "{options}: {peer} {name}: {}",
                String::from_utf8_lossy(&answer.body)
            );
            if caller == ALLOWED {
                assert_eq!(answer.status, 200, "{what}");
            } else {
                assert_eq!(answer.status, 403, "{what}");
                assert_eq!(answer.problem().as_str(), "ip_not_allowed", "{what}");
                let detail = answer.json()["detail"].as_str().unwrap().to_owned();
                assert!(
                    detail.contains(&format!("from the address {caller}.")),
                    "{what}"
                );
            }
            assert_eq!(get(&open).status, 200, "{what}: a key without a list");
        }
        server.stop();
    }
}

/// Passes connections on. Removes `/feed` from the paths of requests, which have no body, if the proxy `strips` it.
fn start_proxy(server: &'static OnceLock<SocketAddr>, strips: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let caller = caller.unwrap();
            let server = TcpStream::connect(server.get().unwrap()).unwrap();
            let (mut to_server, mut to_caller) =
                (server.try_clone().unwrap(), caller.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut &server, &mut to_caller));
            std::thread::spawn(move || {
                for line in BufReader::new(caller).lines().map_while(Result::ok) {
                    let is_request = strips && line.ends_with(" HTTP/1.1");
                    let line = line.replacen(" /feed/", " /", usize::from(is_request));
                    if write!(to_server, "{line}\r\n").is_err() {
                        break;
                    }
                }
                let _ = to_server.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

#[test]
fn a_public_url_may_have_a_path_that_the_proxy_removes() {
    static SERVER: OnceLock<SocketAddr> = OnceLock::new();
    let [strips, keeps] = [true, false].map(|strips| start_proxy(&SERVER, strips));
    let site = Site::with(3);
    let key = site.open_key();
    let public = format!("http://{strips}/feed");
    let server = site.serve_with(&format!("--public-url {public}/"));
    SERVER.set(server.address).unwrap();
    let get = |proxy, target: &str| Client::new(proxy, Some(&key)).get(target);

    assert_eq!(get(strips, "/feed/v1/conferences").items().len(), 3);
    let document = get(strips, "/feed/openapi.json").json();
    assert_eq!(document["servers"][0]["url"], format!("{public}/v1"));
    let docs = get(strips, "/feed/docs");
    let docs = String::from_utf8_lossy(&docs.body).into_owned();
    assert!(docs.contains(&format!("{public}/v1/conferences")));
    // The address of an error leads to its page.
    let missing = get(strips, "/feed/v1/conferences/77").json();
    let page = missing["type"].as_str().unwrap();
    let target = page.strip_prefix(&format!("http://{strips}")).unwrap();
    assert_eq!(target, "/feed/docs/errors/record_not_found");
    assert_eq!(get(strips, target).status, 200);
    // The page's own addresses are relative.
    let explorer = get(strips, "/feed/");
    let explorer = String::from_utf8_lossy(&explorer.body).into_owned();
    assert!(!explorer.contains("=\"/") && !explorer.contains("=/"));
    assert_eq!(get(strips, "/feed/explorer/app.js").status, 200);
    // A copy goes by the same URL.
    let mut pull = site.command(["pull", &public, "--to", "copy.sqlite"]);
    let pulled = pull.env("MEDFEED_KEY", &key).output().unwrap();
    assert!(
        pulled.status.success(),
        "{}",
        String::from_utf8_lossy(&pulled.stderr)
    );

    assert_eq!(get(keeps, "/feed/v1/conferences").problem(), "not_found");
    server.stop();
}
