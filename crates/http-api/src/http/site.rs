//! Pages of other sites, in a browser on this machine: what they must not read or change.
//!
//! Without credentials a server on loopback trusts everybody on its machine. A browser there runs
//! what other sites send it:
//!
//! ```text
//! a form or a fetch to 127.0.0.1        can change, cannot read    the Origin is not ours: refused
//! a link, an image or a script          sends GET without Origin   GET changes nothing
//! a name that now means 127.0.0.1       could do both              the Host is not ours: refused
//! ```

use super::arrived::Arrived;
use super::router::Access;
use hyper::Version;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use net::failure::{Failure, Kind};
use net::hosts::Hosts;

/// Refuses a request whose name for this server is none of ours: the name of another site that has
/// come to mean this machine, so that its pages could read what is here.
///
/// # Errors
/// [`Kind::Forbidden`].
pub(super) fn check_host(hosts: &Hosts, arrived: &Arrived) -> Result<(), Failure> {
    if *hosts == Hosts::Any {
        return Ok(());
    }
    let target = arrived.authority.as_ref().map(|authority| authority.host());
    let header = arrived.headers.get(HOST).map(|value| value.to_str().unwrap_or(""));
    if target.is_none() && header.is_none() && arrived.version <= Version::HTTP_10 {
        // No browser is that old.
        return Ok(());
    }
    let given = target.is_some() || header.is_some();
    let refused = target.into_iter().chain(header).find(|host| !hosts.allow(host));
    match refused {
        None if given => Ok(()),
        _ => Err(foreign_host(refused.unwrap_or(""))),
    }
}

fn foreign_host(host: &str) -> Failure {
    let message = format!("the host {host:?} is not this server's");
    Failure::new(Kind::Forbidden, message).advised(
        "without credentials it answers to localhost and addresses of loopback, and to the names \
         in --http-allowed-hosts",
    )
}

/// Pages of other sites must not make their visitor's browser write to or delete from a server
/// that trusts everybody on this machine.
///
/// # Errors
/// [`Kind::Forbidden`].
pub(super) fn check_site(arrived: &Arrived) -> Result<(), Failure> {
    if arrived.route.access != Access::Change {
        return Ok(());
    }
    // HTTP/2 says the host in its target.
    let target = arrived.authority.as_ref().map(|authority| authority.as_str());
    check_headers(&arrived.headers, target)
}

/// The same of a request whose door finds out only later that it changes something.
///
/// # Errors
/// As `check_site`.
pub fn check_headers(headers: &HeaderMap, target: Option<&str>) -> Result<(), Failure> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let host = target.or_else(|| text(HOST.as_str())).unwrap_or("");
    let is_foreign_origin = text(ORIGIN.as_str())
        .is_some_and(|origin| origin.split_once("://").is_none_or(|(_, site)| site != host));
    // "same-site" is a page of another port or name of this machine; programs send no such header.
    let is_foreign_site =
        text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    if is_foreign_origin || is_foreign_site {
        let message = "a page of another site must not change this database";
        return Err(Failure::new(Kind::Forbidden, message));
    }
    Ok(())
}
