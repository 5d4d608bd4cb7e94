//! Names of columns as PostgreSQL gives them to what has none: a function's result has the
//! function's name, a cast its type's, others `?column?`.
//!
//! Two columns of one name are common in SQL and refused by DataFusion: those after the first get a
//! suffix that begins with NUL, which no client can write, and which is cut off where they are shown.

use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Select, SelectItem, SetExpr, Statement,
    TrimWhereField, VisitorMut,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// What stands between a name and what makes it unlike others.
const SUFFIX: char = '\0';
/// The name of what has none.
const NAMELESS: &str = "?column?";

/// A column's name as clients see it.
pub fn shown_name(name: &str) -> &str {
    name.split(SUFFIX).next().unwrap_or_default()
}

/// A name that is shown as `name`, for the column at a place.
pub fn unlike_others(name: &str, at: usize) -> Ident {
    Ident::with_quote('"', format!("{name}{SUFFIX}{at}"))
}

/// Names the columns of a query, each unlike the others.
///
/// Of the outermost query a cast of a column does not hide the column itself, which clients order by.
pub fn name_columns(items: &mut [SelectItem], is_outermost: bool) {
    let mut taken = HashSet::new();
    // What a wildcard stands for may have any name.
    let is_wild = |item: &SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
    };
    let has_wildcard = items.iter().any(is_wild);
    for (at, item) in items.iter_mut().enumerate() {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = Ident::with_quote('"', given(expr));
                (expr, name)
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.clone()),
            _ => continue,
        };
        let key = folded(&name);
        let is_column = match &*expr {
            Expr::Identifier(ident) => !is_session_word(ident),
            other => matches!(other, Expr::CompoundIdentifier(_)),
        };
        let hides_column = is_outermost
            && matches!(expr, Expr::Cast { expr, .. } if column_of(expr) == Some(key.as_str()))
            || is_column && has_wildcard;
        let is_first = taken.insert(key.clone()) && !hides_column;
        if is_first && is_column {
            continue;
        }
        let alias = match is_first {
            true => name,
            false => unlike_others(&key, at),
        };
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
}

/// Gives columns of that name beside `t.*` the name without its suffix; false where there is none.
pub fn show_alias(statement: &mut Statement, name: &str) -> bool {
    struct Aliases<'a> {
        name: &'a str,
        is_found: bool,
    }
    impl VisitorMut for Aliases<'_> {
        type Break = ();

        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            for item in &mut select.projection {
                if let SelectItem::ExprWithAlias { alias, .. } = item
                    && alias.value.contains(SUFFIX)
                    && shown_name(&alias.value) == self.name
                {
                    *alias = Ident::with_quote('"', self.name);
                    self.is_found = true;
                }
            }
            ControlFlow::Continue(())
        }
    }
    let mut aliases = Aliases { name, is_found: false };
    let _: ControlFlow<()> = walk_mut(statement, &mut aliases);
    aliases.is_found
}

/// Whether a word is a call of a function without parentheses.
fn is_session_word(ident: &Ident) -> bool {
    let words = ["current_role", "current_schema", "localtime", "localtimestamp"];
    ident.quote_style.is_none() && words.iter().any(|word| ident.value.eq_ignore_ascii_case(word))
}

fn column_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(ident) => Some(&ident.value),
        Expr::CompoundIdentifier(parts) => parts.last().map(|ident| ident.value.as_str()),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => column_of(inner),
        _ => None,
    }
}

/// The name that an expression is given.
pub fn given(expr: &Expr) -> String {
    name_of(expr).unwrap_or_else(|| NAMELESS.to_string())
}

/// The strength of a column name: names of types and `case` are weaker than all others.
#[derive(Clone, Copy, PartialEq)]
enum Strength {
    Weak,
    Strong,
}

fn name_of(expr: &Expr) -> Option<String> {
    figure(expr).map(|(name, _)| name)
}

/// PostgreSQL's `FigureColname`.
fn figure(expr: &Expr) -> Option<(String, Strength)> {
    use Strength::{Strong, Weak};
    let known = |name: &str| Some((name.to_string(), Strong));
    let of_type = |written: &dyn ToString| Some((type_name(&written.to_string()), Weak));
    let or_weak = |found: Option<(String, Strength)>, weak: Option<(String, Strength)>| match found
    {
        Some((name, Strong)) => Some((name, Strong)),
        _ => weak,
    };
    match expr {
        Expr::Identifier(ident) => Some((folded(ident), Strong)),
        Expr::CompoundIdentifier(parts) => Some((parts.last().map(folded)?, Strong)),
        Expr::Function(function) => Some((function.name.0.last()?.as_ident().map(folded)?, Strong)),
        Expr::Cast { expr, data_type, .. } => or_weak(figure(expr), of_type(data_type)),
        Expr::CompoundFieldAccess { root, .. } => figure(root),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figure(inner),
        // As its only column is called.
        Expr::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::UnnamedExpr(expr)] => name_of(expr).map(|name| (name, Strong)),
                [SelectItem::ExprWithAlias { alias, .. }] => Some((folded(alias), Strong)),
                _ => None,
            },
            _ => None,
        },
        Expr::AtTimeZone { .. } => known("timezone"),
        Expr::Case { else_result, .. } => {
            let otherwise = else_result.as_deref().and_then(figure);
            or_weak(otherwise, Some(("case".to_string(), Weak)))
        }
        Expr::Exists { .. } => known("exists"),
        Expr::Extract { .. } => known("extract"),
        Expr::Array(_) => known("array"),
        Expr::Substring { shorthand: true, .. } => known("substr"),
        Expr::Substring { .. } => known("substring"),
        Expr::Trim { trim_where: Some(TrimWhereField::Leading), .. } => known("ltrim"),
        Expr::Trim { trim_where: Some(TrimWhereField::Trailing), .. } => known("rtrim"),
        Expr::Trim { .. } => known("btrim"),
        Expr::Position { .. } => known("position"),
        Expr::Overlay { .. } => known("overlay"),
        Expr::Ceil { .. } => known("ceil"),
        Expr::Floor { .. } => known("floor"),
        Expr::TypedString(typed) => of_type(&typed.data_type),
        Expr::Interval(_) => of_type(&"interval"),
        _ => None,
    }
}

/// A name as PostgreSQL understands it: in small letters, unless it stands in quotes.
pub fn folded(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// What PostgreSQL calls a type within, which is how a column cast to it is named.
fn type_name(written: &str) -> String {
    let written = written.to_lowercase();
    // An array is called by what it is of.
    let written = written.split('[').next().unwrap_or_default();
    let without_length = match (written.split_once('('), written.split_once(')')) {
        (Some((before, _)), Some((_, behind))) => format!("{before}{behind}"),
        _ => written.to_string(),
    };
    let plain = without_length.trim();
    match plain {
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "double precision" | "float" => "float8",
        "real" => "float4",
        "boolean" => "bool",
        "decimal" => "numeric",
        "timestamp with time zone" => "timestamptz",
        "timestamp without time zone" => "timestamp",
        "character varying" => "varchar",
        "char" | "character" => "bpchar",
        "time without time zone" => "time",
        other if other.starts_with("interval") => "interval",
        other => other.rsplit('.').next().unwrap_or(other),
    }
    .to_string()
}

/// The schema of PostgreSQL's own tables and functions.
pub const CATALOG_SCHEMA: &str = "pg_catalog";

/// The last part of a name, in small letters where it stands without quotes.
pub fn name_of_last(name: &ObjectName) -> String {
    let last = name.0.last().and_then(ObjectNamePart::as_ident);
    last.map_or_else(String::new, folded)
}

/// A text between quotes.
pub fn quoted_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::dialect::Postgres;
    use crate::types::dialect::with_matchers;
    use datafusion::sql::sqlparser::ast::{SetExpr, Statement};
    use datafusion::sql::sqlparser::parser::Parser;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    fn names(text: &str) -> Vec<String> {
        let dialect = Postgres::new(0);
        let tokens = with_matchers(Tokenizer::new(&dialect, text).tokenize().unwrap());
        let mut all = Parser::new(&dialect).with_tokens(tokens).parse_statements().unwrap();
        let Some(Statement::Query(query)) = all.pop() else { panic!("{text}") };
        let SetExpr::Select(mut select) = *query.body else { panic!("{text}") };
        name_columns(&mut select.projection, true);
        let name = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            SelectItem::UnnamedExpr(expr) => name_of(expr).unwrap(),
            other => other.to_string(),
        };
        select.projection.iter().map(name).collect()
    }

    #[test]
    fn names_are_those_of_postgresql() {
        let text = "SELECT 1, count(*), count(a), a, t.a, x.F(a), b::int, '1'::timestamptz, \
                    CASE WHEN a THEN 1 END, Labels->>'x', 2 AS A, CASE WHEN a THEN 1 ELSE 1::int8 END, \
                    CASE WHEN a THEN 1 ELSE x.f(a) END, '{1}'::int[], 1::timestamp(3) with time zone, \
                    f(a)::text, substr('a', 1), substring('a' from 1), trim(leading from 'a'), \
                    trim(trailing from 'a'), trim('a')";
        let expected = [
            "?column?",
            "count",
            "count",
            "a",
            "a",
            "f",
            "b",
            "timestamptz",
            "case",
            "?column?",
            "a",
            "case",
            "f",
            "int4",
            "timestamptz",
            "f",
            "substr",
            "substring",
            "ltrim",
            "rtrim",
            "btrim",
        ];
        let found = names(text);
        assert_eq!(found.iter().map(|name| shown_name(name)).collect::<Vec<_>>(), expected);
        let unlike: HashSet<&String> = found.iter().collect();
        assert_eq!(unlike.len(), found.len(), "{found:?}");
    }
}
