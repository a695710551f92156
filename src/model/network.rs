//! Networks of addresses, for trusted proxies, keys and rate limits.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

/// Parses a CIDR, or an address as a CIDR of one address. IPv4 addresses mapped to IPv6 become IPv4.
///
/// # Errors
/// A remedy: what to write instead.
pub fn parse_network(text: &str) -> Result<IpNet, String> {
    let network = match text.parse::<IpNet>() {
        Ok(network) => network,
        Err(_) => IpNet::from(
            text.parse::<IpAddr>()
                .map_err(|_| "write an address or a CIDR: 192.0.2.7, 192.0.2.0/24, 2001:db8::/32".to_owned())?,
        ),
    };
    let IpNet::V6(v6) = network else { return Ok(network.trunc()) };
    match v6.addr().to_ipv4_mapped() {
        None => Ok(network.trunc()),
        Some(v4) => match v6.prefix_len().checked_sub(96) {
            Some(prefix) => {
                Ipv4Net::new(v4, prefix).map(|net| IpNet::V4(net.trunc())).map_err(|error| error.to_string())
            }
            None => Err("a CIDR of mapped IPv4 addresses must be /96 or longer; write it as IPv4".to_owned()),
        },
    }
}

/// Returns the address under which limits count a caller. All addresses of an IPv6 /64 count as one.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_without_host_bits() {
        let cases = [
            ("192.0.2.7", Ok("192.0.2.7/32")),
            ("192.0.2.7/24", Ok("192.0.2.0/24")),
            ("192.0.2.255/31", Ok("192.0.2.254/31")),
            ("2001:db8:1::9/32", Ok("2001:db8::/32")),
            ("2001:db8::9", Ok("2001:db8::9/128")),
            ("::ffff:192.0.2.7", Ok("192.0.2.7/32")),
            ("::ffff:192.0.2.7/120", Ok("192.0.2.0/24")),
            ("::ffff:192.0.2.7/128", Ok("192.0.2.7/32")),
            ("::ffff:192.0.2.7/96", Ok("0.0.0.0/0")),
            ("::ffff:192.0.2.7/95", Err("must be /96 or longer")),
            ("192.0.2.7/33", Err("write an address or a CIDR")),
            ("192.0.2", Err("write an address or a CIDR")),
            ("example.org", Err("write an address or a CIDR")),
            ("", Err("write an address or a CIDR")),
        ];
        for (text, expected) in cases {
            match (parse_network(text), expected) {
                (Ok(network), Ok(expected)) => assert_eq!(network.to_string(), expected, "{text}"),
                (Err(message), Err(expected)) => assert!(message.contains(expected), "{text}: {message}"),
                (network, expected) => panic!("{text}: {network:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn an_ipv6_caller_is_its_network() {
        let cases = [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:0:1::7", "2001:db8:0:1::"),
            ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::"),
            ("2001:db8:0:2::7", "2001:db8:0:2::"),
            ("::1", "::"),
        ];
        for (address, network) in cases {
            assert_eq!(network_of(address.parse().unwrap()).to_string(), network, "{address}");
        }
    }
}
