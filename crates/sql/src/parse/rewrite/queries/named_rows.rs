//! Names of relations that stand for their rows: `row_to_json(t)`, `count(DISTINCT t.*)`, `SELECT t FROM t`.

use crate::parse::rewrite::expressions::call;
use crate::types::names::{folded, name_of_last};
use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    CaseWhen, Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    TableWithJoins, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// `t.*`, which is NULL where all its columns are.
pub(crate) fn all_columns(relation: &Ident) -> SqlExpr {
    SqlExpr::QualifiedWildcard(ObjectName::from(vec![relation.clone()]), AttachedToken::empty())
}

pub(crate) fn row_call(function: &str, relation: &Ident) -> SqlExpr {
    let mut made = call(function, Vec::new());
    if let SqlExpr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut made {
        let relation = ObjectName::from(vec![relation.clone()]);
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(relation)));
    }
    made
}

/// Reads `json_agg(t.*)` as `json_agg(t)`.
pub fn name_json_rows(function: &mut Function) {
    let name = name_of_last(&function.name);
    let FunctionArguments::List(list) = &mut function.args else { return };
    if !JSON_FUNCTIONS.contains(&name.as_str()) {
        return;
    }
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(relation)) = arg
            && let [part] = relation.0.as_slice()
            && let Some(name) = part.as_ident()
        {
            let row = SqlExpr::Identifier(name.clone());
            *arg = FunctionArg::Unnamed(FunctionArgExpr::Expr(row));
        }
    }
}

/// Counts the texts of rows for `count(DISTINCT t.*)`: the planner would count one.
pub fn count_row_texts(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if list.duplicate_treatment.is_none() || name_of_last(&function.name) != "count" {
        return;
    }
    if let [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(relation))] =
        list.args.as_mut_slice()
        && let Some(name) = relation.0.last().and_then(|part| part.as_ident())
    {
        let row = row_call(ROW_AS_TEXT, name);
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(row))];
    }
}

/// Reads a name that the planner knows no column of as the row of a relation; says whether there is such a relation.
pub fn name_rows(statement: &mut Statement, name: &str) -> bool {
    let mut reader = RowReader { name: name.to_string(), scopes: Vec::new(), is_changed: false };
    let _: ControlFlow<()> = walk_mut(statement, &mut reader);
    reader.is_changed
}

/// The meaning of a name in a query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The query has no relation of that name.
    None,
    Rows,
    /// On the side of an outer join that may have no row: its row is NULL then.
    OptionalRows,
    /// A function of one column: its row is the value.
    Values(&'static str),
}

pub(crate) struct RowReader {
    name: String,
    scopes: Vec<Relation>,
    is_changed: bool,
}

impl RowReader {
    fn relation(&self) -> Relation {
        let known = self.scopes.iter().rev().find(|one| **one != Relation::None);
        known.copied().unwrap_or(Relation::None)
    }

    fn relation_in(&self, body: &SetExpr) -> Relation {
        match body {
            SetExpr::Select(select) => {
                let mut relations = select.from.iter().map(|from| self.relation_of_join(from));
                relations.find(|one| *one != Relation::None).unwrap_or(Relation::None)
            }
            SetExpr::SetOperation { left, right, .. } => match self.relation_in(left) {
                Relation::None => self.relation_in(right),
                known => known,
            },
            _ => Relation::None,
        }
    }

    fn relation_of_join(&self, from: &TableWithJoins) -> Relation {
        let mut found = self.relation_of(&from.relation);
        for join in &from.joins {
            let (keeps_left, keeps_right) = match join.join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (true, false),
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (false, true),
                JoinOperator::FullOuter(_) => (true, true),
                _ => (false, false),
            };
            let optional = |relation: Relation, is_optional: bool| match relation {
                Relation::Rows if is_optional => Relation::OptionalRows,
                other => other,
            };
            found = match found {
                Relation::None => optional(self.relation_of(&join.relation), keeps_left),
                known => optional(known, keeps_right),
            };
        }
        found
    }

    fn relation_of(&self, table: &TableFactor) -> Relation {
        let (alias, name) = match table {
            TableFactor::Table { alias, name, args: None, .. } => (alias, name.0.last()),
            TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => {
                (alias, None)
            }
            _ => return Relation::None,
        };
        let own = name.and_then(|part| part.as_ident()).map(folded);
        let own = alias.as_ref().map(|alias| folded(&alias.name)).or(own);
        match table {
            _ if own.as_deref() != Some(self.name.as_str()) => Relation::None,
            TableFactor::Derived { subquery, .. } if makes_values(subquery) => {
                Relation::Values("value")
            }
            _ => Relation::Rows,
        }
    }

    /// Makes a `jsonb` of the row that a subquery selects: `to_jsonb((SELECT t FROM .. AS t))`.
    fn row_of_subquery(&mut self, query: &mut Query, function: &str) {
        let relation = self.relation_in(&query.body);
        let SetExpr::Select(select) = &mut *query.body else { return };
        let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
            select.projection.as_mut_slice()
        else {
            return;
        };
        self.scopes.push(relation);
        if let Some(row) = self.row(value, function) {
            *value = row;
        }
        self.scopes.pop();
    }

    fn row(&mut self, expr: &SqlExpr, function: &str) -> Option<SqlExpr> {
        let SqlExpr::Identifier(name) = expr else { return None };
        if folded(name) != self.name {
            return None;
        }
        let made = match self.relation() {
            Relation::None => return None,
            Relation::Rows => row_call(function, name),
            Relation::OptionalRows => SqlExpr::Case {
                case_token: AttachedToken::empty(),
                end_token: AttachedToken::empty(),
                operand: None,
                conditions: vec![CaseWhen {
                    condition: SqlExpr::IsNull(Box::new(all_columns(name))),
                    result: SqlExpr::value(Value::Null),
                }],
                else_result: Some(Box::new(row_call(function, name))),
            },
            Relation::Values(column) => {
                SqlExpr::CompoundIdentifier(vec![name.clone(), Ident::with_quote('"', column)])
            }
        };
        self.is_changed = true;
        Some(made)
    }
}

impl VisitorMut for RowReader {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let relation = self.relation_in(&query.body);
        self.scopes.push(relation);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(row) = self.row(expr, ROW_AS_TEXT)
            {
                let alias = Ident::with_quote('"', self.name.as_str());
                *item = SelectItem::ExprWithAlias { expr: row, alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<()> {
        if let SqlExpr::IsNull(row) | SqlExpr::IsNotNull(row) = expr
            && let SqlExpr::Identifier(name) = &**row
            && folded(name) == self.name
            && matches!(self.relation(), Relation::Rows | Relation::OptionalRows)
        {
            **row = all_columns(name);
            self.is_changed = true;
            return ControlFlow::Continue(());
        }
        if let Some(row) = self.row(expr, ROW_AS_TEXT) {
            *expr = row;
            return ControlFlow::Continue(());
        }
        let SqlExpr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = name_of_last(&function.name);
        let of_json = JSON_FUNCTIONS.contains(&name.as_str());
        let FunctionArguments::List(list) = &mut function.args else {
            return ControlFlow::Continue(());
        };
        for arg in &mut list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg else { continue };
            if !of_json {
                continue;
            }
            let row_function =
                if OF_JSON.contains(&name.as_str()) { ROW_AS_JSON } else { ROW_AS_JSONB };
            if let Some(row) = self.row(value, row_function) {
                *value = row;
            } else if let SqlExpr::Subquery(query) = value {
                self.row_of_subquery(query, row_function);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns true for the query that `jsonb_array_elements` and its like become in FROM.
pub(crate) fn makes_values(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else { return false };
    match select.projection.as_slice() {
        [SelectItem::ExprWithAlias { expr: SqlExpr::Function(_), alias }] => {
            select.from.is_empty() && alias.value == "value"
        }
        _ => false,
    }
}

/// Functions that make JSON of a row.
pub(crate) const JSON_FUNCTIONS: &[&str] = &[
    "json_agg",
    "jsonb_agg",
    "row_to_json",
    "to_json",
    "to_jsonb",
    "jsonb_object_agg",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
];

/// JSON functions that take rows as `json`, not as `jsonb`.
pub(crate) const OF_JSON: &[&str] =
    &["json_agg", "json_build_array", "json_build_object", "row_to_json", "to_json"];

/// A row as an object of JSON.
pub(crate) const ROW_AS_JSONB: &str = "pg_row_jsonb";

/// A row as a text of `json`.
pub(crate) const ROW_AS_JSON: &str = "pg_row_json";

/// A row as a text: `(1,"two words",)`.
pub(crate) const ROW_AS_TEXT: &str = "pg_row_text";
