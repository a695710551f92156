//! Callers behind a proxy: the address that counts, and the proxies that may name it.

use std::net::IpAddr;

use super::client::Client;
use super::site::{Server, Site, conferences_of_version};

/// The address of no proxy.
const STRANGER: &str = "127.0.0.2";
/// The only address that the key may be used from.
const ALLOWED: &str = "198.51.100.7";

struct Case {
    /// The source of the connection.
    peer: &'static str,
    /// The headers that are sent.
    sent: &'static [(&'static str, &'static str)],
    /// The expected caller.
    caller: &'static str,
}

const fn case(peer: &'static str, sent: &'static [(&'static str, &'static str)], caller: &'static str) -> Case {
    Case { peer, sent, caller }
}

const PROXY: &str = "127.0.0.1";
const XFF: &str = "X-Forwarded-For";

/// Serves with a trusted proxy; returns keys for `ALLOWED` alone and for everybody.
fn serve(more: &[&str]) -> (Site, Server, [String; 2]) {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(3, 0));
    let open = site.open_key();
    let narrow = site.key("all", &["--allow-ip", ALLOWED, "--allow-ip", "2001:db8::/32"]).1;
    let args = ["serve", "--listen", "127.0.0.1:0", "--log", "warn", "--trusted-proxy", PROXY];
    let server = site.start(site.command([&args, more].concat()));
    (site, server, [narrow, open])
}

fn check_cases(server: &Server, [narrow, open]: &[String; 2], cases: &[Case]) {
    for Case { peer, sent, caller } in cases {
        let client = |key: &str| {
            let from: IpAddr = peer.parse().unwrap();
            let client = Client::new(server.address, Some(key)).coming_from(from);
            sent.iter().fold(client, |client, (name, value)| client.with_header(name, value))
        };
        let answer = client(narrow).get("/v1/conferences");
        if *caller == ALLOWED || caller.starts_with("2001:db8:") {
            assert_eq!(answer.status, 200, "{peer} {sent:?}: {}", String::from_utf8_lossy(&answer.body));
        } else {
            assert_eq!((answer.status, answer.problem().as_str()), (403, "ip_not_allowed"), "{peer} {sent:?}");
            let detail = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains(&format!("from the address {caller}.")), "{peer} {sent:?}: {detail}");
        }
        assert_eq!(client(open).get("/v1/conferences").status, 200, "{peer} {sent:?}: a key without a list");
    }
}

#[test]
fn x_forwarded_for_counts_only_from_trusted_proxies() {
    let (_site, server, keys) = serve(&[]);
    check_cases(
        &server,
        &keys,
        &[
            case(PROXY, &[], PROXY),
            case(PROXY, &[(XFF, ALLOWED)], ALLOWED),
            case(PROXY, &[("x-forwarded-for", "::ffff:198.51.100.7")], ALLOWED),
            case(PROXY, &[(XFF, "198.51.100.7:4711")], ALLOWED),
            case(PROXY, &[(XFF, "[2001:db8::5]:4711")], "2001:db8::5"),
            case(PROXY, &[(XFF, "203.0.113.9")], "203.0.113.9"),
            case(PROXY, &[(XFF, "198.51.100.7, 203.0.113.9")], "203.0.113.9"),
            case(PROXY, &[(XFF, "203.0.113.9, 198.51.100.7")], ALLOWED),
            case(PROXY, &[(XFF, "203.0.113.9, 198.51.100.7, 127.0.0.1")], ALLOWED),
            case(PROXY, &[(XFF, "198.51.100.7"), (XFF, "203.0.113.9")], "203.0.113.9"),
            case(PROXY, &[(XFF, "198.51.100.7, unknown")], PROXY),
            case(PROXY, &[(XFF, "é, 203.0.113.9")], "203.0.113.9"),
            case(PROXY, &[("Forwarded", "for=198.51.100.7")], PROXY),
            case(PROXY, &[("Forwarded", "for=203.0.113.9"), (XFF, ALLOWED)], ALLOWED),
            case(STRANGER, &[], STRANGER),
            case(STRANGER, &[(XFF, ALLOWED)], STRANGER),
            case(STRANGER, &[(XFF, "198.51.100.7, 127.0.0.1")], STRANGER),
            case(STRANGER, &[("Forwarded", "for=198.51.100.7")], STRANGER),
        ],
    );
    server.stop();
}

#[test]
fn forwarded_replaces_x_forwarded_for_by_an_option() {
    let (_site, server, keys) = serve(&["--forwarded-header", "forwarded"]);
    check_cases(
        &server,
        &keys,
        &[
            case(PROXY, &[("Forwarded", "for=198.51.100.7")], ALLOWED),
            case(PROXY, &[("Forwarded", "For=\"198.51.100.7:80\";proto=https;by=127.0.0.1")], ALLOWED),
            case(PROXY, &[("Forwarded", "for=\"[2001:db8::7]:4711\"")], "2001:db8::7"),
            case(PROXY, &[("Forwarded", "for=198.51.100.7, for=203.0.113.9")], "203.0.113.9"),
            case(PROXY, &[("Forwarded", "for=198.51.100.7, for=127.0.0.1;proto=http")], ALLOWED),
            case(PROXY, &[("Forwarded", "for=_hidden")], PROXY),
            case(PROXY, &[("Forwarded", "for=198.51.100.7;x=\", for=203.0.113.9")], "203.0.113.9"),
            case(PROXY, &[("Forwarded", "for=198.51.100.7;x=\", for=\"203.0.113.9:80\"")], "203.0.113.9"),
            case(PROXY, &[(XFF, ALLOWED)], PROXY),
            case(PROXY, &[(XFF, ALLOWED), ("Forwarded", "for=203.0.113.9")], "203.0.113.9"),
            case(STRANGER, &[("Forwarded", "for=198.51.100.7")], STRANGER),
            case(STRANGER, &[(XFF, ALLOWED)], STRANGER),
        ],
    );
    server.stop();
}

#[test]
fn without_trusted_proxies_forwarding_headers_are_ignored() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(3, 0));
    let open = site.open_key();
    let narrow = site.key("all", &["--allow-ip", ALLOWED]).1;
    let server = site.serve();
    check_cases(
        &server,
        &[narrow, open],
        &[
            case(PROXY, &[(XFF, ALLOWED)], PROXY),
            case(PROXY, &[("Forwarded", "for=198.51.100.7")], PROXY),
            case(STRANGER, &[(XFF, ALLOWED)], STRANGER),
        ],
    );
    server.stop();
}
