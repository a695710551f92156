//! Networks of addresses, as operators write them: trusted proxies and where a key may be used.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

/// A CIDR, or an address as a CIDR of one. IPv4 mapped to IPv6 becomes IPv4, as callers' addresses do.
///
/// # Errors
/// What to write instead.
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
