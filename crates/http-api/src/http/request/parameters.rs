//! Parameters and headers of other products that narrow what a request sees or does and that Quipu
//! cannot apply: refused by name, as an answer without them would be another one.
//!
//! `docs/parameters.md` lists all parameters; a test sends each row to the server.

use super::selection::invalid;
use crate::http::arrived::Arrived;
use crate::http::router::{Access, Class};
use hyper::header::{HeaderMap, HeaderName};
use net::failure::Failure;

/// A parameter, values of it that change nothing, and why others are refused.
type Refused = (&'static str, &'static [&'static str], &'static str);

/// Parameters of requests that do not store samples.
const PARAMETERS: [Refused; 6] = [
    ("storeMatch[]", &[], "there is one store"),
    ("replicaLabels[]", &[], "replicas are not merged; aggregate without their label"),
    ("shard_info", &[], "queries are not sharded"),
    ("latency_offset", &["0", "0s", "0ms", "1ms"], "the newest samples are always shown"),
    ("round_digits", &[], "values are not rounded; use round() in the query"),
    ("skip_head", &["0", "false"], "snapshots have all samples"),
];

/// Headers that name a tenant.
static TENANT_HEADERS: [(HeaderName, &str); 4] = [
    (HeaderName::from_static("x-scope-orgid"), ""),
    (HeaderName::from_static("thanos-tenant"), ""),
    (HeaderName::from_static("accountid"), "0"),
    (HeaderName::from_static("projectid"), "0"),
];

/// Refuses what is not applied.
///
/// # Errors
/// 400 with the name.
pub(in crate::http) fn check_parameters(arrived: &Arrived) -> Result<(), Failure> {
    if arrived.route.access == Access::Open {
        return Ok(());
    }
    check_tenant(&arrived.headers)?;
    if arrived.route.class == Class::Insert {
        return Ok(());
    }
    for (name, harmless, reason) in &PARAMETERS {
        let values = || arrived.params.all(name).filter(|value| !value.is_empty());
        if values().any(|value| !harmless.contains(&value)) {
            return Err(invalid(name, reason).advised("leave it out"));
        }
    }
    Ok(())
}

fn check_tenant(headers: &HeaderMap) -> Result<(), Failure> {
    let named = TENANT_HEADERS.iter().find(|(name, harmless)| {
        headers.get_all(name).iter().any(|value| {
            !value.is_empty() && (harmless.is_empty() || value.as_bytes() != harmless.as_bytes())
        })
    });
    match named {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("header {:?} names a tenant, and there are none", name.as_str());
            Err(Failure::bad_input(message)
                .advised("leave it out, or confine tenants by extra_label in a proxy"))
        }
    }
}
