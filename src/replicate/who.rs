//! Who publishes, follows or promotes, as the log and people are told: user and machine.

use std::env;
use std::fs;

/// `user@machine`, in one word of at most 121 characters.
pub fn who() -> String {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER").or_else(|| variable("LOGNAME"));
    let user = user.unwrap_or_else(|| format!("uid{}", rustix::process::getuid().as_raw()));
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| variable("HOSTNAME"));
    let machine = machine.unwrap_or_else(|| "localhost".to_owned());
    let plain = |text: &str| -> String {
        let one_word = text.trim().chars().map(|c| if c.is_whitespace() || c.is_control() { '?' } else { c });
        one_word.take(60).collect()
    };
    format!("{}@{}", plain(&user), plain(&machine))
}
