//! Callers behind a proxy: the header that a server reads, and the peers that it trusts. The forms of both headers are
//! in `fixtures/addresses.txt`.

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
    let servers: [(&str, [Case; 3]); 3] = [
        (
            "--trusted-proxy 127.0.0.1",
            [
                (PROXY, XFF, ALLOWED),
                (PROXY, FORWARDED, PROXY),
                (STRANGER, XFF, STRANGER),
            ],
        ),
        (
            "--trusted-proxy 127.0.0.1 --forwarded-header forwarded",
            [
                (PROXY, FORWARDED, ALLOWED),
                (PROXY, XFF, PROXY),
                (STRANGER, FORWARDED, STRANGER),
            ],
        ),
        (
            "",
            [
                (PROXY, XFF, PROXY),
                (PROXY, FORWARDED, PROXY),
                (STRANGER, XFF, STRANGER),
            ],
        ),
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
                assert_eq!(
                    (answer.status, answer.problem().as_str()),
                    (403, "ip_not_allowed"),
                    "{what}"
                );
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
