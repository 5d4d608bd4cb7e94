//! Databases, roles, and the settings that their sessions begin with, as PostgreSQL's tables tell of them.
//!
//! There is one database and one role, whatever clients call them when they come. Those of whom settings are kept are
//! told of besides, so that what `pg_db_role_setting` says of numbers has names, and so is the database by the name
//! that the client gave it, which is what `current_database()` says.

use crate::catalog::cells::{Cell, Table, number, text, yes};
use crate::catalog::names::{DATABASE, ROLE, ROLE_OID};
use crate::tables::heap::stored_settings::Setting;
use crate::types::facts::Facts;
use std::collections::{BTreeMap, BTreeSet};

/// The number of the database.
const DATABASE_OID: i32 = 5;
/// From here on numbers are made of names.
const NAMED_OID: i32 = 1 << 30;

/// The tables about roles and databases that `user` sees in the database `own`, where these settings are kept.
pub fn told(name: &str, settings: &[Setting], own: &str, user: &str) -> Option<Table> {
    let said = |names: Vec<&String>| -> BTreeSet<String> {
        names.into_iter().filter(|name| !name.is_empty()).cloned().collect()
    };
    let known = || {
        let mut named = said(settings.iter().map(|one| &one.role).collect());
        named.extend((!user.is_empty()).then(|| user.to_string()));
        named
    };
    Some(match name {
        "pg_database" => {
            let mut named = said(settings.iter().map(|one| &one.database).collect());
            named.extend((!own.is_empty()).then(|| own.to_string()));
            databases(&named)
        }
        "pg_roles" => roles("pg_roles", &known()),
        "pg_authid" => roles("pg_authid", &known()),
        "pg_user" => users(&known()),
        "pg_stat_database" => Table {
            name: "pg_stat_database",
            columns: "datid:o datname:n",
            rows: vec![vec![number(database_oid(own)), text(own)]],
        },
        "pg_db_role_setting" => kept(settings),
        _ => return None,
    })
}

/// All of them, where nothing is kept.
pub fn tables() -> impl Iterator<Item = Table> {
    let names = [
        "pg_database",
        "pg_roles",
        "pg_authid",
        "pg_user",
        "pg_db_role_setting",
        "pg_stat_database",
    ];
    names.into_iter().filter_map(|name| told(name, &[], DATABASE, ""))
}

/// A number that is the same for a name wherever it is told.
fn named_oid(name: &str, known: (&str, i32)) -> i32 {
    if name == known.0 {
        return known.1;
    }
    // FNV-1a.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    NAMED_OID | (hash & (NAMED_OID.cast_unsigned() - 1)).cast_signed()
}

fn database_oid(name: &str) -> i32 {
    named_oid(name, (DATABASE, DATABASE_OID))
}

fn role_oid(name: &str) -> i32 {
    named_oid(name, (ROLE, ROLE_OID))
}

fn databases(named: &BTreeSet<String>) -> Table {
    let row = |name: &str| {
        vec![
            number(database_oid(name)),
            text(name),
            number(ROLE_OID),
            number(6),
            text("c"),
            yes(false),
            yes(true),
            number(-1),
            number(1663),
            text("C"),
            text("C"),
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]
    };
    let others = named.iter().map(String::as_str).filter(|name| *name != DATABASE);
    let columns = "oid:o datname:n datdba:o encoding:i datlocprovider:c datistemplate:b \
                   datallowconn:b datconnlimit:i dattablespace:o datcollate:t datctype:t \
                   daticulocale:t datcollversion:t datacl:a";
    Table {
        name: "pg_database",
        columns,
        rows: [DATABASE].into_iter().chain(others).map(row).collect(),
    }
}

fn roles(name: &'static str, named: &BTreeSet<String>) -> Table {
    let row = |role: &str| {
        let mut row = vec![number(role_oid(role)), text(role)];
        row.extend((0..7).map(|_| yes(true)));
        row.extend([number(-1), Cell::Null, Cell::Null, Cell::Null]);
        row
    };
    let others = named.iter().map(String::as_str).filter(|role| *role != ROLE);
    let columns = "oid:o rolname:n rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b \
                   rolcanlogin:b rolreplication:b rolbypassrls:b rolconnlimit:i rolpassword:t \
                   rolvaliduntil:t rolconfig:a";
    Table { name, columns, rows: [ROLE].into_iter().chain(others).map(row).collect() }
}

fn users(named: &BTreeSet<String>) -> Table {
    let row = |role: &str| {
        let mut row = vec![text(role), number(role_oid(role))];
        row.extend((0..4).map(|_| yes(true)));
        row
    };
    let others = named.iter().map(String::as_str).filter(|role| *role != ROLE);
    let columns = "usename:n usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b";
    Table { name: "pg_user", columns, rows: [ROLE].into_iter().chain(others).map(row).collect() }
}

/// `pg_stat_activity` with the session that asks.
pub fn activity(facts: &dyn Facts) -> Table {
    let (database, user) = (facts.database(), facts.user());
    let application = facts.setting("application_name").unwrap_or_default();
    let row = vec![
        number(database_oid(&database)),
        text(&database),
        number(facts.pid()),
        number(role_oid(&user)),
        text(&user),
        text(&application),
        text("active"),
        text("client backend"),
    ];
    let columns = "datid:o datname:n pid:i usesysid:o usename:n application_name:t state:t \
                   backend_type:t";
    Table { name: "pg_stat_activity", columns, rows: vec![row] }
}

fn kept(settings: &[Setting]) -> Table {
    let mut all: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for one in settings {
        let of = all.entry((&one.database, &one.role)).or_default();
        of.push(format!("{}={}", one.name, one.value));
    }
    let row = |((database, role), said): ((&str, &str), Vec<String>)| {
        let oid = |name: &str, of: fn(&str) -> i32| if name.is_empty() { 0 } else { of(name) };
        vec![number(oid(database, database_oid)), number(oid(role, role_oid)), Cell::Texts(said)]
    };
    let columns = "setdatabase:o setrole:o setconfig:a";
    Table { name: "pg_db_role_setting", columns, rows: all.into_iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_of_whom_they_are() {
        let one = |role: &str, name: &str| Setting {
            role: role.into(),
            database: String::new(),
            name: name.into(),
            value: "x".into(),
        };
        let settings = [one("", "a.b"), one("me", "c.d"), one("me", "e.f")];
        let told = told("pg_db_role_setting", &settings, DATABASE, "").unwrap();
        let said = |all: &[&str]| Cell::Texts(all.iter().map(|one| one.to_string()).collect());
        assert_eq!(told.rows[0], [number(0), number(0), said(&["a.b=x"])]);
        assert_eq!(told.rows[1][1..], [number(role_oid("me")), said(&["c.d=x", "e.f=x"])]);
        assert!(NAMED_OID <= role_oid("me"));
        let roles = super::told("pg_roles", &settings, DATABASE, "you").unwrap();
        assert_eq!(
            roles.rows.iter().map(|row| &row[1]).collect::<Vec<_>>(),
            [&text(ROLE), &text("me"), &text("you")]
        );
        let databases = super::told("pg_database", &[], "shop", "").unwrap();
        let names: Vec<_> = databases.rows.iter().map(|row| &row[1]).collect();
        assert_eq!(names, [&text(DATABASE), &text("shop")]);
        assert_eq!(roles.rows[1].len(), roles.columns.split_whitespace().count());
    }
}
