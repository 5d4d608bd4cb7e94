//! `x.y` of a relation `x` of an outer query, where a table of the inner query has a column `x`: DataFusion takes it for
//! a part of that column. The outer relation gets a name that no column has, and the statement is planned again.

use crate::types::error::SqlError;
use crate::types::names::folded;
use crate::types::traversal::{walk, walk_mut};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins,
    Visitor, VisitorMut,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Suffix of the new names of outer relations; no statement can contain a NUL.
const SUFFIX: &str = "\0outer";

/// Relations by the number of their query and their name.
type Marked = BTreeSet<(usize, String)>;

/// Queries around a place, from the outermost to the innermost: their numbers, and the names of their relations.
#[derive(Default)]
struct Scopes {
    all: Vec<(usize, Vec<String>)>,
    /// Whether each query that is open has a scope of its own, or its parts have.
    queries: Vec<bool>,
    count: usize,
}

impl Scopes {
    /// Begins a query; says its number if it is a `SELECT`.
    fn begin_query(&mut self, query: &Query) -> Option<usize> {
        let select = match &*query.body {
            SetExpr::Select(select) => Some(select),
            _ => None,
        };
        self.queries.push(select.is_some());
        select.map(|select| self.begin(select))
    }

    fn begin(&mut self, select: &Select) -> usize {
        let mut names = Vec::new();
        select.from.iter().for_each(|from| push_names(from, &mut names));
        self.count += 1;
        self.all.push((self.count, names));
        self.count
    }

    fn end_query(&mut self) {
        if self.queries.pop() == Some(true) {
            self.all.pop();
        }
    }

    /// Whether a `SELECT` is a part of a set operation, which has the scope.
    fn is_part(&self) -> bool {
        self.queries.last() == Some(&false)
    }

    /// The query whose relation a name is, and whether it is not the innermost.
    fn find(&self, name: &str) -> Option<(usize, bool)> {
        let found = self.all.iter().rev().position(|(_, names)| names.iter().any(|n| n == name))?;
        let (number, _) = &self.all[self.all.len() - 1 - found];
        Some((*number, 0 < found))
    }
}

fn push_names(from: &TableWithJoins, names: &mut Vec<String>) {
    let all = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
    for table in all {
        match table {
            TableFactor::NestedJoin { table_with_joins, alias: None, .. } => {
                push_names(table_with_joins, names);
            }
            other => names.extend(name_of(other)),
        }
    }
}

pub fn name_of(table: &TableFactor) -> Option<String> {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => Some(folded(&alias.name)),
        TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => {
            name.0.last().and_then(ObjectNamePart::as_ident).map(folded)
        }
        _ => None,
    }
}

/// Names the schema in `t.*` of `FROM schema.t`: the planner knows `t` by its whole name.
pub fn name_schemas_of_wildcards(select: &mut Select) {
    let tables = select.from.iter().flat_map(|from| {
        std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
    });
    let named: Vec<(String, ObjectName)> = tables.filter_map(whole_name).collect();
    for item in &mut select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) =
            item
            && let [ObjectNamePart::Identifier(table)] = name.0.as_slice()
            && let Some((_, whole)) = named.iter().find(|(one, _)| *one == folded(table))
        {
            *name = whole.clone();
        }
    }
}

/// The last part of the name of a table without an alias, and its name with a schema, if it has one.
fn whole_name(table: &TableFactor) -> Option<(String, ObjectName)> {
    let TableFactor::Table { name, alias: None, args: None, .. } = table else { return None };
    let last = name.0.last().and_then(ObjectNamePart::as_ident).map(folded)?;
    match name.0.as_slice() {
        [_] if last.starts_with("pg_") => {
            let schema =
                ObjectNamePart::Identifier(Ident::new(crate::types::names::CATALOG_SCHEMA));
            Some((last, ObjectName([&[schema], name.0.as_slice()].concat())))
        }
        [.., _, _] => Some((last, ObjectName(name.0[name.0.len() - 2..].to_vec()))),
        _ => None,
    }
}

/// Names columns of outer queries that a subquery selects as they are: the planner calls them `outer_ref(x.y)`.
pub fn name_outer_columns(select: &mut Select) {
    let mut own = Vec::new();
    select.from.iter().for_each(|from| push_names(from, &mut own));
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Expr::CompoundIdentifier(parts) = expr
            && let [table, column] = parts.as_slice()
            && !own.contains(&folded(table))
        {
            let alias = Ident::with_quote('"', folded(column));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Finds relations that are named within queries further in, and the first name that is of no relation.
#[derive(Default)]
struct Finder {
    scopes: Scopes,
    marked: Marked,
    missing: Option<String>,
}

impl Visitor for Finder {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scopes.begin_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.scopes.end_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if self.scopes.is_part() {
            self.scopes.begin(select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        if self.scopes.is_part() {
            self.scopes.all.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::CompoundIdentifier(parts) = expr else { return ControlFlow::Continue(()) };
        let name = folded(&parts[0]);
        match (self.scopes.find(&name), parts.as_slice()) {
            (Some((number, true)), [_, _]) => {
                self.marked.insert((number, name));
            }
            (Some((_, false)), [_, _]) => {}
            (_, [_, _]) => {
                self.missing.get_or_insert(name);
            }
            (_, [_, table, _]) => {
                self.missing.get_or_insert(folded(table));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Gives the relations their new names.
struct Renamer {
    scopes: Scopes,
    marked: Marked,
}

fn renamed(ident: &Ident) -> Ident {
    Ident::with_quote('"', format!("{}{SUFFIX}", folded(ident)))
}

impl Renamer {
    fn is_marked(&self, ident: &Ident) -> bool {
        let name = folded(ident);
        let found = self.scopes.find(&name);
        found.is_some_and(|(number, _)| self.marked.contains(&(number, name)))
    }

    fn rename_tables(&self, number: usize, from: &mut TableWithJoins) {
        let joined = from.joins.iter_mut().map(|join| &mut join.relation);
        for table in std::iter::once(&mut from.relation).chain(joined) {
            if let TableFactor::NestedJoin { table_with_joins, alias: None, .. } = table {
                self.rename_tables(number, table_with_joins);
                continue;
            }
            let Some(name) = name_of(table) else { continue };
            if !self.marked.contains(&(number, name.clone())) {
                continue;
            }
            let name = renamed(&Ident::with_quote('"', name));
            match table {
                TableFactor::Table { alias, .. }
                | TableFactor::Derived { alias, .. }
                | TableFactor::Function { alias, .. }
                | TableFactor::UNNEST { alias, .. }
                | TableFactor::NestedJoin { alias, .. } => match alias {
                    Some(alias) => alias.name = name,
                    None => {
                        *alias = Some(TableAlias {
                            explicit: true,
                            name,
                            columns: Vec::new(),
                            at: None,
                        });
                    }
                },
                _ => {}
            }
        }
    }

    fn rename_select(&self, number: usize, select: &mut Select) {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(ObjectName(parts)),
                _,
            ) = item
                && let [ObjectNamePart::Identifier(ident)] = parts.as_mut_slice()
                && self.is_marked(ident)
            {
                *ident = renamed(ident);
            }
        }
        for from in &mut select.from {
            self.rename_tables(number, from);
        }
    }
}

impl VisitorMut for Renamer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some(number) = self.scopes.begin_query(query)
            && let SetExpr::Select(select) = &mut *query.body
        {
            self.rename_select(number, select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.end_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if self.scopes.is_part() {
            let number = self.scopes.begin(select);
            self.rename_select(number, select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        if self.scopes.is_part() {
            self.scopes.all.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && parts.len() == 2
            && self.is_marked(&parts[0])
        {
            parts[0] = renamed(&parts[0]);
        }
        ControlFlow::Continue(())
    }
}

/// Renames relations that are named further in than their own query.
///
/// # Errors
/// `42P01` for a part of a column that is no relation at all.
pub fn rename_outer_relations(statement: &mut Statement) -> Result<(), SqlError> {
    let mut finder = Finder::default();
    let _: ControlFlow<()> = walk(statement, &mut finder);
    if let Some(name) = finder.missing {
        let words = format!("missing FROM-clause entry for table \"{name}\"");
        return Err(SqlError::new("42P01", words));
    }
    let mut renamer = Renamer { scopes: Scopes::default(), marked: finder.marked };
    let _: ControlFlow<()> = walk_mut(statement, &mut renamer);
    Ok(())
}
