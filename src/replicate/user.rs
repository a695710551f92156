//! The name under which this process publishes, follows or promotes.

use std::env;

/// Returns user, machine and the random name of the publisher's file. Entries carry this name.
pub fn publisher_name(file_name: &str) -> String {
    format!("{} {file_name}", user_at_host())
}

/// Returns the user and machine of a [`publisher_name`], for messages.
pub fn user_part(who: &str) -> &str {
    who.split_once(' ').map_or(who, |(who, _)| who)
}

/// Whether two names in entries are of the same publisher's file. Its random name comes last; users and machines are
/// renamed.
pub fn is_same_publisher(who: &str, other: &str) -> bool {
    who.rsplit(' ').next() == other.rsplit(' ').next()
}

/// Returns `user@machine`, without spaces, at most 121 characters.
fn user_at_host() -> String {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER").or_else(|| variable("LOGNAME"));
    let user = user.unwrap_or_else(|| format!("uid{}", rustix::process::getuid().as_raw()));
    // Not from /proc/sys, which hardened units hide: replicas on all machines would then have one name.
    let system = rustix::system::uname();
    let plain = |text: &str| -> String {
        let one_word = text.trim().chars().map(|c| if c.is_whitespace() || c.is_control() { '?' } else { c });
        one_word.take(60).collect()
    };
    format!("{}@{}", plain(&user), plain(&system.nodename().to_string_lossy()))
}
