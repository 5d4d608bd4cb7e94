//! The names by which clients may call the server, where it trusts everybody on its machine.

use std::net::IpAddr;

/// The names that a request may have for this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Every name: the server asks for credentials, or is not on loopback.
    Any,
    /// `localhost`, addresses of loopback, and these names.
    Local(Vec<String>),
}

impl Hosts {
    /// Whether `host`, with or without a port, is one of them.
    pub fn allow(&self, host: &str) -> bool {
        let Hosts::Local(names) = self else { return true };
        let name = without_port(host);
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        is("localhost") || is_loopback(name) || names.iter().any(|known| is(known))
    }
}

/// The host of `host:port`, whose end may be the dot of a full name.
fn without_port(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        // `[::1]` alone has colons of its own.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

fn is_loopback(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    inner.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let hosts = Hosts::Local(vec!["metrics.test".into(), "192.0.2.7".into()]);
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:8428", true),
            ("localhost.", true),
            ("127.0.0.1:8428", true),
            ("127.9.9.9", true),
            ("[::1]", true),
            ("[::1]:8428", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("Metrics.Test:80", true),
            ("192.0.2.7:8428", true),
            ("192.0.2.8", false),
            ("localhost.evil.test", false),
            ("127.0.0.1.evil.test", false),
            ("evil.test:8428", false),
            ("[2001:db8::1]:8428", false),
            ("", false),
            (":8428", false),
            ("localhost:x", false),
        ] {
            assert_eq!(hosts.allow(host), expected, "{host:?}");
            assert!(Hosts::Any.allow(host));
        }
    }
}
