//! Reads which databases, retention policies, measurements and fields a remote InfluxDB has.

use super::super::backend::Request;
use super::asking;
use super::catalog::{Catalog, Count, Database, Schemas, listed, policy};
use anyhow::ensure;
use http_client::influxql::{show_fields, show_fields_of_policy, show_policies};
use std::collections::BTreeSet;

/// Its own database, of what it does itself.
const INTERNAL: &str = "_internal";

/// Asks for all of it; who has asked before knows which databases there were.
pub fn read(request: &mut Request<'_>, before: Option<&Catalog>) -> anyhow::Result<Catalog> {
    let rule = request.rule();
    let mut catalog = Catalog::default();
    let names = match rule.databases.is_empty() {
        false => rule.databases.clone(),
        true => catalog.choose(databases(request)?, before),
    };
    let (mut count, mut policies) = (Count::default(), BTreeSet::new());
    for name in names {
        catalog.databases.append(&mut database(request, &name, (&mut count, &mut policies))?);
    }
    let lost: Vec<String> =
        rule.policies.iter().filter(|name| !policies.contains(*name)).cloned().collect();
    if !lost.is_empty() {
        let there: Vec<String> = policies.into_iter().collect();
        let (lost, there) = (listed(&lost), listed(&there));
        let words =
            format!("no retention policy is called {lost} (retention-policy=); there are: {there}");
        catalog.lacks.push(words);
    }
    Ok(catalog)
}

fn databases(request: &mut Request<'_>) -> anyhow::Result<Vec<String>> {
    let (mut names, mut count) = (Vec::new(), Count::default());
    asking::names(request, ("", &["SHOW DATABASES"]), None, &mut |_, row| {
        let name = row.text("name");
        if name != INTERNAL && !name.is_empty() {
            count.row(0, &[name])?;
            names.push(name.to_string());
        }
        Ok(())
    })?;
    Ok(names)
}

/// Reads the measurements of a database, and notes the names of its policies.
fn database(
    request: &mut Request<'_>,
    name: &str,
    (count, names): (&mut Count, &mut BTreeSet<String>),
) -> anyhow::Result<Vec<Database>> {
    let rule = request.rule();
    let (mut default, mut others) = (None, Vec::new());
    let mut schemas = Schemas::new(name, count);
    let texts = [show_policies(name), show_fields(name)];
    let texts = texts.each_ref().map(String::as_str);
    asking::names(request, (name, &texts), None, &mut |statement, row| {
        if statement != 0 {
            return schemas.field(row);
        }
        schemas.policy(row.text("name"))?;
        names.insert(row.text("name").to_string());
        let wanted = policy(rule, name, row);
        match row.is_on("default") {
            true => default = wanted,
            false => others.extend(wanted),
        }
        Ok(())
    })?;
    schemas.close(default);
    let texts: Vec<String> =
        others.iter().map(|policy| show_fields_of_policy(name, &policy.name)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (mut rest, mut others) = (texts.as_slice(), others.into_iter());
    while !rest.is_empty() {
        let (some, later) = rest.split_at(asking::count_at_once(rest.iter().copied()));
        let mut open = 0;
        asking::names(request, (name, some), None, &mut |statement, row| {
            ensure!(open <= statement, "an answer in another order than the statements");
            (open..statement).for_each(|_| schemas.close(others.next()));
            open = statement;
            schemas.field(row)
        })?;
        (open..some.len()).for_each(|_| schemas.close(others.next()));
        rest = later;
    }
    Ok(schemas.found)
}
