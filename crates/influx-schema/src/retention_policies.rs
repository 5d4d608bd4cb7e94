//! Retention policies of InfluxDB's databases: which there are, and where their samples are.
//!
//! The first policy of a database has its samples under the database's own name, every other policy
//! under `database.policy`; that name is the value of the label `db`. `DEFAULT` chooses the policy of
//! writes and queries that name none and moves no samples.
//!
//! A schema record ([`crate::records`]) keeps them as JSON of [`DatabasePolicies`], one for each database
//! that has said something about policies. A database without one has the policy `autogen` alone.

use crate::records::{Change, Key, KeyKind, SchemaRecords};
use influxql::{AUTOGEN, RetentionPolicy};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// Policies of a database.
pub const POLICIES_MAX: usize = 100;

/// Policies of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabasePolicies {
    /// Policy whose samples are under the database's own name, even after it was dropped.
    pub base: String,
    /// Policy of writes and queries that name none; it may have been dropped.
    pub default: String,
    /// All policies, the oldest first.
    pub all: Vec<Policy>,
}

/// Retention policy. Durations are nanoseconds, 0 is infinite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The name.
    pub name: String,
    /// Duration for which samples are kept.
    pub duration: i64,
    /// Time span of a shard group of InfluxDB.
    pub shard_duration: i64,
    /// Copies in a cluster of InfluxDB.
    pub replication: i64,
}

impl DatabasePolicies {
    /// A database with one policy.
    pub fn new(policy: Policy) -> DatabasePolicies {
        let name = policy.name.clone();
        DatabasePolicies { base: name.clone(), default: name, all: vec![policy] }
    }

    fn autogen() -> DatabasePolicies {
        let RetentionPolicy { name, duration, shard_duration, replication, .. } =
            RetentionPolicy::autogen();
        DatabasePolicies::new(Policy { name, duration, shard_duration, replication })
    }

    /// A policy by its name.
    pub fn get(&self, name: &str) -> Option<&Policy> {
        self.all.iter().find(|policy| policy.name == name)
    }

    /// Name under which a policy's samples are.
    pub fn stored_name(&self, database: &str, policy: &str) -> String {
        match policy == self.base {
            true => database.to_string(),
            false => format!("{database}.{policy}"),
        }
    }

    /// The policies as InfluxQL lists them.
    pub fn listed(&self) -> Vec<RetentionPolicy> {
        let listed = |policy: &Policy| RetentionPolicy {
            name: policy.name.clone(),
            duration: policy.duration,
            shard_duration: policy.shard_duration,
            replication: policy.replication,
            is_default: policy.name == self.default,
        };
        self.all.iter().map(listed).collect()
    }
}

#[derive(Default)]
struct State {
    databases: BTreeMap<String, DatabasePolicies>,
    /// Database and policy of each stored name that is not a database's own.
    owners: HashMap<String, (String, String)>,
}

/// Retention policies of all databases.
pub struct RetentionPolicies {
    records: Arc<SchemaRecords>,
    state: RwLock<State>,
    changing: Mutex<()>,
}

impl RetentionPolicies {
    /// Reads the schema records.
    pub fn read(records: &Arc<SchemaRecords>) -> RetentionPolicies {
        let mut state = State::default();
        records.for_each(KeyKind::Policies, &mut |key, value| {
            let Some(Key::Policies { database }) = Key::parse(key) else { return };
            match serde_json::from_str(value) {
                Ok(policies) => state.put(database, policies),
                Err(error) => {
                    tracing::error!(database, %error, "retention policies cannot be read");
                }
            }
        });
        let (records, state) = (Arc::clone(records), RwLock::new(state));
        RetentionPolicies { records, state, changing: Mutex::new(()) }
    }

    fn shared(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lock for whoever reads policies to change them.
    pub fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Databases that have said something about their policies.
    pub fn databases(&self) -> Vec<String> {
        self.shared().databases.keys().cloned().collect()
    }

    /// Whether a database has said something about policies, or one of them has its samples there.
    pub fn has(&self, name: &str) -> bool {
        let state = self.shared();
        state.databases.contains_key(name) || state.owners.contains_key(name)
    }

    /// Policies that a database has said.
    pub fn noted(&self, database: &str) -> Option<DatabasePolicies> {
        self.shared().databases.get(database).cloned()
    }

    /// Policies of a database.
    pub fn get(&self, database: &str) -> DatabasePolicies {
        self.noted(database).unwrap_or_else(DatabasePolicies::autogen)
    }

    /// Name under which the samples of a policy are, or of the default policy.
    ///
    /// # Errors
    /// The name of the policy that is not there.
    pub fn stored_name(&self, database: &str, policy: Option<&str>) -> Result<String, String> {
        let state = self.shared();
        let Some(policies) = state.databases.get(database) else {
            return match policy {
                None | Some(AUTOGEN) => Ok(database.to_string()),
                Some(policy) => Err(policy.to_string()),
            };
        };
        let policy = policy.unwrap_or(&policies.default);
        match policies.get(policy) {
            Some(_) => Ok(policies.stored_name(database, policy)),
            None => Err(policy.to_string()),
        }
    }

    /// Names under which the samples of a database's policies are.
    pub fn stored_names(&self, database: &str) -> Vec<String> {
        match self.shared().databases.get(database) {
            None => vec![database.to_string()],
            Some(policies) => {
                let names = policies.all.iter();
                names.map(|policy| policies.stored_name(database, &policy.name)).collect()
            }
        }
    }

    /// Database and policy whose samples are under a name that is not a database's own.
    pub fn owner(&self, stored_name: &str) -> Option<(String, String)> {
        self.shared().owners.get(stored_name).cloned()
    }

    /// Replaces the policies of a database; durable on return.
    ///
    /// # Errors
    /// When the records cannot be written.
    pub fn put(&self, database: &str, policies: DatabasePolicies) -> store::Result<()> {
        self.records.put(&[change_of_policies(database, Some(&policies))])?;
        self.set_noted(database, Some(policies));
        Ok(())
    }

    /// Remembers the policies of a database whose record is there; `None` forgets them.
    pub fn set_noted(&self, database: &str, policies: Option<DatabasePolicies>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match policies {
            Some(policies) => state.put(database, policies),
            None => state.remove(database),
        }
    }
}

/// The change of the record of a database's policies; `None` removes it.
pub fn change_of_policies(database: &str, policies: Option<&DatabasePolicies>) -> Change {
    let key = Key::Policies { database };
    match policies {
        Some(policies) => Change::put(key, serde_json::to_string(policies).unwrap_or_default()),
        None => Change::remove(key),
    }
}

impl State {
    fn put(&mut self, database: &str, policies: DatabasePolicies) {
        self.remove(database);
        for policy in policies.all.iter().filter(|policy| policy.name != policies.base) {
            let owner = (database.to_string(), policy.name.clone());
            self.owners.insert(policies.stored_name(database, &policy.name), owner);
        }
        self.databases.insert(database.to_string(), policies);
    }

    fn remove(&mut self, database: &str) {
        self.owners.retain(|_, (owner, _)| owner != database);
        self.databases.remove(database);
    }
}
