//! CREATE, ALTER and DROP RETENTION POLICY, and databases with their policies.

use super::super::policies::name_of_policy;
use super::changes::Changes;
pub use super::source::{NAMELESS_DATABASE, database_matcher};
use influx_schema::retention_policies::{
    DatabasePolicies, POLICIES_MAX, Policy, change_of_policies,
};
use influx_schema::schema::record_of_database;
use influxql::ast::Policy as Asked;
use influxql::{AUTOGEN, Answer, EvalError, Source as _, shard_duration};
use net::failure::{Failure, Kind};

const HOUR: i64 = 3_600_000_000_000;
/// Shortest duration that InfluxDB takes.
const DURATION_MIN: i64 = HOUR;
/// Shortest duration of a shard; InfluxDB takes it for shorter ones.
const SHARD_DURATION_MIN: i64 = HOUR;
const CONFLICT: &str = "retention policy conflicts with an existing policy";

/// Checks a policy. Without a shard duration InfluxDB's default applies.
fn checked(policy: Policy) -> Result<Policy, Failure> {
    if policy.duration != 0 && policy.duration < DURATION_MIN {
        return Err(Failure::bad_input("retention policy duration must be at least 1h0m0s"));
    }
    let shard_duration = match policy.shard_duration {
        0 => shard_duration(policy.duration),
        said => said.max(SHARD_DURATION_MIN),
    };
    if policy.duration != 0 && policy.duration < shard_duration {
        let words = "retention policy duration must be greater than the shard duration";
        return Err(Failure::bad_input(words));
    }
    Ok(Policy { shard_duration, ..policy })
}

/// Whether InfluxDB takes a name for a database or a policy.
pub(super) fn is_valid_name(name: &str) -> bool {
    let is_bad = |character: char| matches!(character, '/' | '\\') || character.is_control();
    !matches!(name, "" | "." | "..") && !name.contains(is_bad)
}

/// A new policy as a statement says it.
pub(super) fn policy_of(asked: &Asked) -> Result<Policy, Failure> {
    let name = asked.name.clone().unwrap_or_else(|| AUTOGEN.to_string());
    if !is_valid_name(&name) {
        return Err(Failure::bad_input("invalid name"));
    }
    checked(Policy {
        name,
        duration: asked.duration.unwrap_or(0),
        shard_duration: asked.shard_duration.unwrap_or(0),
        replication: asked.replication.unwrap_or(1),
    })
}

/// Answer to a statement that has set a duration: nothing deletes samples because of it.
fn warned(duration: i64) -> Answer {
    let text = "the duration of a retention policy is noted, not enforced: samples are kept as \
                long as --retention says";
    let messages = if duration == 0 { Vec::new() } else { vec![text.to_string()] };
    Answer { messages, ..Answer::default() }
}

fn unanswered(error: EvalError) -> Failure {
    Failure::bad_input(error.to_string())
}

/// Makes a refusal the answer to a statement, for those behind it to be told.
pub(super) fn answered(result: Result<Answer, Failure>) -> Result<Answer, Failure> {
    match result {
        Err(failure) if failure.kind == Kind::BadInput => Ok(Answer::failed(failure.message)),
        result => result,
    }
}

impl Changes<'_, '_> {
    /// Refuses names that are those of a policy's samples.
    pub(super) fn refuse_policy_name(&self, database: &str) -> Option<Answer> {
        let (owner, policy) = self.source.app.policies.owner(database)?;
        Some(Answer::failed(name_of_policy(database, &owner, &policy)))
    }

    /// Notes the policy that `CREATE DATABASE ... WITH` says.
    pub(super) fn create_first_policy(
        &self,
        database: &str,
        asked: &Asked,
    ) -> Result<Answer, Failure> {
        let app = self.source.app;
        let policy = policy_of(asked)?;
        let _changing = app.policies.lock_changes();
        if let Some(known) = app.policies.noted(database) {
            let is_same = known.default == policy.name && known.get(&policy.name) == Some(&policy);
            return if is_same { Ok(Answer::default()) } else { Err(Failure::bad_input(CONFLICT)) };
        }
        let duration = policy.duration;
        let policies = DatabasePolicies::new(policy);
        app.policies.put(database, policies).map_err(Failure::of_write)?;
        Ok(warned(duration))
    }

    pub(super) fn create_policy(&self, database: &str, asked: &Asked) -> Result<Answer, Failure> {
        let app = self.source.app;
        self.check_database(database)?;
        let policy = policy_of(asked)?;
        let _changing = app.policies.lock_changes();
        let mut policies = app.policies.get(database);
        if let Some(known) = policies.get(&policy.name) {
            let is_default = policies.default == policy.name;
            return match (*known == policy, asked.is_default && !is_default) {
                (false, _) => Err(Failure::bad_input("retention policy already exists")),
                (true, true) => Err(Failure::bad_input(CONFLICT)),
                (true, false) => Ok(Answer::default()),
            };
        }
        self.check_stored_name(database, &policies, &policy.name)?;
        if asked.is_default {
            policies.default.clone_from(&policy.name);
        }
        let duration = policy.duration;
        policies.all.push(policy);
        app.policies.put(database, policies).map_err(Failure::of_write)?;
        Ok(warned(duration))
    }

    /// Fails if the samples of a new policy would be among those of a database or another policy.
    fn check_stored_name(
        &self,
        database: &str,
        policies: &DatabasePolicies,
        policy: &str,
    ) -> Result<(), Failure> {
        let app = self.source.app;
        if POLICIES_MAX <= policies.all.len() {
            let message =
                format!("database {database} has {POLICIES_MAX} retention policies, the limit");
            return Err(Failure::bad_input(message));
        }
        let stored = policies.stored_name(database, policy);
        if stored == database {
            return Ok(());
        }
        if app.config.insert.database_label.is_empty() {
            let words = "retention policies need a label of databases (--influx.database-label)";
            return Err(Failure::bad_input(words));
        }
        let size_max = app.config.store.limits.label_value_size_max;
        if size_max < stored.len() {
            return Err(Failure::bad_input(format!(
                "the names of a database and its retention policy have at most {size_max} bytes with \
                 the dot between them (max-label-value-size)"
            )));
        }
        if let Some((owner, other)) = app.policies.owner(&stored) {
            return Err(Failure::bad_input(name_of_policy(&stored, &owner, &other)));
        }
        match self.source.has_database(&stored).map_err(unanswered)? {
            true => Err(Failure::bad_input(format!(
                "there is a database {stored:?}: retention policy {policy:?} of database {database:?} \
                 would have its samples in it. Choose another name or drop that database"
            ))),
            false => Ok(()),
        }
    }

    /// Fails if there is no such database.
    fn check_database(&self, database: &str) -> Result<(), Failure> {
        if let Some((owner, policy)) = self.source.app.policies.owner(database) {
            return Err(Failure::bad_input(name_of_policy(database, &owner, &policy)));
        }
        match self.source.has_database(database).map_err(unanswered)? {
            true => Ok(()),
            false => Err(Failure::bad_input(format!("database not found: {database}"))),
        }
    }

    pub(super) fn alter_policy(&self, database: &str, asked: &Asked) -> Result<Answer, Failure> {
        let app = self.source.app;
        self.check_database(database)?;
        let name = asked.name.as_deref().unwrap_or_default();
        let _changing = app.policies.lock_changes();
        let mut policies = app.policies.get(database);
        let Some(known) = policies.all.iter_mut().find(|policy| policy.name == name) else {
            return Err(Failure::bad_input(format!("retention policy not found: {name}")));
        };
        *known = checked(Policy {
            name: name.to_string(),
            duration: asked.duration.unwrap_or(known.duration),
            shard_duration: asked.shard_duration.unwrap_or(known.shard_duration),
            replication: asked.replication.unwrap_or(known.replication),
        })?;
        if asked.is_default {
            policies.default = name.to_string();
        }
        app.policies.put(database, policies).map_err(Failure::of_write)?;
        Ok(warned(asked.duration.unwrap_or(0)))
    }

    /// Drops a policy with its samples; there is no error if it is not there.
    pub(super) fn drop_policy(&self, database: &str, name: &str) -> Result<Answer, Failure> {
        let app = self.source.app;
        let _changing = app.policies.lock_changes();
        let mut policies = app.policies.get(database);
        if policies.get(name).is_none() {
            return Ok(Answer::default());
        }
        let stored = policies.stored_name(database, name);
        if stored == NAMELESS_DATABASE {
            let message =
                format!("policy {name} of database {database} is all that was written without one");
            return Err(Failure::bad_input(message));
        }
        if !self.source.has_database(database).map_err(unanswered)? {
            return Ok(Answer::default());
        }
        policies.all.retain(|policy| policy.name != name);
        // The database stays, though nothing may be left that tells of it.
        let mut changes = vec![change_of_policies(database, Some(&policies))];
        changes.extend(record_of_database(database));
        let noted = || {
            app.measurements.add_created(database);
            app.policies.set_noted(database, Some(policies));
        };
        match database_matcher(app, &stored) {
            Some(matcher) => {
                let (sets, forgotten) = ([vec![matcher]], [(stored.as_str(), None)]);
                self.delete_and_forget(&sets, &forgotten, &changes, noted)?;
            }
            None => {
                app.schema.put(&changes).map_err(Failure::of_write)?;
                noted();
            }
        }
        tracing::info!(database, policy = name, "dropped a retention policy on request");
        Ok(Answer::default())
    }
}
