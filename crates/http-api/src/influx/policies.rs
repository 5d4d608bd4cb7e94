//! Names of databases, retention policies and buckets in requests, and the name under which their
//! samples are.

use app::App;
use influx_schema::NAMELESS_DATABASE;
use influxql::AUTOGEN;
use net::failure::Failure;

/// Error about a database's name that is the name of a policy's samples.
pub(super) fn name_of_policy(name: &str, database: &str, policy: &str) -> String {
    format!(
        "{name:?} is the name of the samples of retention policy {policy:?} of database {database:?}: \
         say database and policy (db={database}&rp={policy}), or choose another name"
    )
}

/// Database and policy of a bucket, which is `database` or `database/policy`.
pub(super) fn database_and_policy(bucket: &str) -> (&str, Option<&str>) {
    match bucket.split_once('/') {
        Some((database, policy)) => (database, Some(policy).filter(|policy| !policy.is_empty())),
        None => (bucket, None),
    }
}

/// Name under which what is written to a policy is stored, or to the default policy.
///
/// # Errors
/// For a policy that is not there, and for a database's name that is the name of a policy's samples.
pub(super) fn stored_name(
    app: &App,
    database: Option<&str>,
    policy: Option<&str>,
) -> Result<Option<String>, Failure> {
    let not_found =
        |policy: &str| Failure::not_found(format!("retention policy not found: {policy}"));
    if app.config.insert.database_label.is_empty() {
        return match policy {
            None | Some(AUTOGEN) => Ok(database.map(str::to_string)),
            Some(policy) => Err(not_found(policy)),
        };
    }
    let name = database.unwrap_or(NAMELESS_DATABASE);
    if let Some((owner, policy)) = app.policies.owner(name) {
        return Err(Failure::bad_input(name_of_policy(name, &owner, &policy)));
    }
    let stored = app.policies.stored_name(name, policy).map_err(|policy| not_found(&policy))?;
    Ok(Some(stored).filter(|stored| database.is_some() || stored != NAMELESS_DATABASE))
}
