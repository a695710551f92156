//! The address of a caller, and whether a key's list of addresses allows it: the table `fixtures/addresses.txt`.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use medfeed::model::key::parse_network;
use medfeed::serve::connection::address::TrustedProxies;
use medfeed::store::write::licensing::KeySettings;

use crate::harness::World;

const TABLE: &str = include_str!("../../fixtures/addresses.txt");

/// A text of the table as bytes: `<ff>` is a byte, `<300*TEXT>` repeats a text.
fn bytes_of(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('<') {
        let (inside, after) = after.split_once('>').expect(text);
        bytes.extend(before.as_bytes());
        match inside.split_once('*') {
            Some((times, repeated)) => {
                bytes.extend(repeated.repeat(times.parse().expect(text)).as_bytes())
            }
            None => bytes.push(u8::from_str_radix(inside, 16).expect(text)),
        }
        rest = after;
    }
    bytes.extend(rest.as_bytes());
    bytes
}

fn headers_of(lines: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(" + ").filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.trim_start().split_once(':').expect(line);
        let name = match name {
            "X" => "x-forwarded-for",
            "F" => "forwarded",
            other => other,
        };
        let name = HeaderName::from_bytes(name.as_bytes()).expect(line);
        headers.append(name, HeaderValue::from_bytes(&bytes_of(value)).expect(line));
    }
    headers
}

fn networks_of(text: &str) -> Vec<IpNet> {
    text.split_whitespace()
        .map(|network| parse_network(network).expect(network))
        .collect()
}

#[test]
fn callers_and_allowed_addresses_match_the_table() {
    let world = World::small();
    let mut proxies = TrustedProxies::default();
    let (mut key, mut keys, mut cases, mut failures) = (String::new(), 0, 0, Vec::new());
    for (number, line) in TABLE
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "trust" => proxies.networks = networks_of(rest),
            "header" => proxies.use_forwarded = rest == "forwarded",
            "allow" => {
                (keys, key) = (keys + 1, format!("list {keys}"));
                let settings = KeySettings {
                    allowed_ips: networks_of(rest),
                    ..KeySettings::default()
                };
                world.new_key(&key, "full", settings);
            }
            "network" => {
                let (text, expected) = rest.split_once('|').expect(line);
                let read = parse_network(text.trim())
                    .map_or_else(|_| "refused".to_owned(), |read| read.to_string());
                cases += 1;
                if read != expected.trim() {
                    failures.push(format!("line {}: {read}: {line}", number + 1));
                }
            }
            _ => {
                let [peer, lines, expected, usable, _] = line.split(" |").collect::<Vec<_>>()[..]
                else {
                    panic!("five columns: {line}")
                };
                let caller = proxies.caller(peer.parse().expect(line), &headers_of(lines));
                // Every case has a minute of its own, so that no limit is reached.
                world.at_s.set(world.at_s.get() + 61);
                world.address.set(caller);
                let answer = world.get(&key, "/v1/conferences?limit=1");
                let allowed = match answer.status {
                    200 => "yes",
                    _ => {
                        let piece = format!("from the address {caller}.");
                        answer.expect_problem("ip_not_allowed", &piece);
                        "no"
                    }
                };
                cases += 1;
                let expected: IpAddr = expected.trim().parse().expect(line);
                if (caller, allowed) != (expected, usable.trim()) {
                    failures.push(format!("line {}: {caller} {allowed}: {line}", number + 1));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {cases} cases:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(cases >= 250, "{cases} cases");
}
