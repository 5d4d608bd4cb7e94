//! Functions that make rows: `jsonb_object_keys`, `jsonb_array_elements`, `regexp_matches` and their kin,
//! in the select list and as tables. DataFusion makes rows of lists, so each becomes the list of what it makes.

use crate::catalog::functions::NO_PRIVILEGES;
use crate::functions::generate_series;
use crate::functions::json::jsonb_parts::{
    ELEMENT_TEXTS, ELEMENTS, IS_JSONB, KEYS, PAIRS, TEXT_PAIRS, TEXTS, VALUES,
};
use crate::functions::signatures::is_scalar_function;
use crate::functions::text::regexps::{MATCHES, SPLIT};
use crate::parse::rewrite::expressions::{
    arguments, array_type, call, cast, is_named, is_placeholder, only_argument,
};
use crate::parse::rewrite::functions::phrases::rows;
use crate::parse::rewrite::values::vectors::places;
use crate::types::error::SqlError;
use crate::types::keywords::KEYWORDS;
use crate::types::names::{CATALOG_SCHEMA, folded, name_of_last};
use crate::types::traversal::walk;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, Ident,
    ObjectName, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    TableFunctionArgs, Value, Visitor,
};
use std::ops::ControlFlow;

/// A function that makes rows.
#[derive(Clone, Copy, PartialEq)]
enum Set {
    Keys,
    Each,
    EachText,
    Elements,
    ElementTexts,
    /// Of texts and patterns: the function that makes the list.
    Texts(&'static str),
    Places,
    /// The entries of a list of privileges: none, as no object has such a list.
    Privileges,
}

const SETS: &[(&str, Set)] = &[
    ("jsonb_object_keys", Set::Keys),
    ("json_object_keys", Set::Keys),
    ("jsonb_each", Set::Each),
    ("json_each", Set::Each),
    ("jsonb_each_text", Set::EachText),
    ("json_each_text", Set::EachText),
    ("jsonb_array_elements", Set::Elements),
    ("json_array_elements", Set::Elements),
    ("jsonb_array_elements_text", Set::ElementTexts),
    ("json_array_elements_text", Set::ElementTexts),
    ("aclexplode", Set::Privileges),
    ("generate_subscripts", Set::Places),
    ("regexp_matches", Set::Texts(MATCHES)),
    ("regexp_split_to_table", Set::Texts(SPLIT)),
    ("string_to_table", Set::Texts("string_to_array")),
];

/// Functions that make one value, and as a table a row of it.
const VALUES_AS_TABLES: &[&str] = &[
    "string_to_array",
    "current_setting",
    "current_schemas",
    "current_database",
    "current_role",
    "current_schema",
    "version",
    "now",
];

fn none() -> Expr {
    Expr::Value(Value::Null.into())
}

impl Set {
    fn of(name: &ObjectName) -> Option<Set> {
        SETS.iter().find(|(one, _)| is_named(name, one)).map(|(_, set)| *set)
    }

    /// Its columns as a table, and what they are of its arguments; `only` is the name of the one column
    /// of a function that gives it none.
    fn columns(self, only: &str, args: &[&Expr]) -> Vec<(String, Expr)> {
        let named = |name: &str, expr: Expr| vec![(name.to_string(), expr)];
        let jsonb = |list: &str| call(IS_JSONB, vec![rows(list, args)]);
        match self {
            Set::Keys => named(only, rows(KEYS, args)),
            Set::Each => {
                vec![("key".to_string(), rows(KEYS, args)), ("value".to_string(), jsonb(VALUES))]
            }
            Set::EachText => vec![
                ("key".to_string(), rows(KEYS, args)),
                ("value".to_string(), rows(TEXTS, args)),
            ],
            Set::Elements => named("value", jsonb(ELEMENTS)),
            Set::ElementTexts => named("value", rows(ELEMENT_TEXTS, args)),
            Set::Texts(list) => named(only, rows(list, args)),
            Set::Privileges => {
                let oid = || SqlType::Custom(ObjectName::from(vec![Ident::new("oid")]), Vec::new());
                let columns = [
                    ("grantor", oid()),
                    ("grantee", oid()),
                    ("privilege_type", SqlType::Text),
                    ("is_grantable", SqlType::Boolean),
                ];
                let empty = |of: SqlType| {
                    let none = Expr::Array(Array { elem: Vec::new(), named: true });
                    call("unnest", vec![cast(none, array_type(of))])
                };
                columns.into_iter().map(|(name, of)| (name.to_string(), empty(of))).collect()
            }
            Set::Places => named(only, args.first().map_or_else(none, |list| places(list))),
        }
    }
}

/// Such a function in the select list: a row of two is shown as one text.
pub fn set_in_list(function: &Function) -> Option<Expr> {
    let args = arguments(function)?;
    args.first()?;
    if is_named(&function.name, generate_series::NAME) {
        return Some(rows(generate_series::LIST, &args));
    }
    Some(match Set::of(&function.name)? {
        Set::Each => rows(PAIRS, &args),
        Set::EachText => rows(TEXT_PAIRS, &args),
        Set::Privileges => rows(NO_PRIVILEGES, &[]),
        set => set.columns("", &args).pop()?.1,
    })
}

/// Refuses subscripts other than those of the first dimension, from the first to the last.
///
/// # Errors
/// `0A000`.
pub fn check_subscripts(function: &Function) -> Result<(), SqlError> {
    if !is_named(&function.name, "generate_subscripts") {
        return Ok(());
    }
    match arguments(function).as_deref() {
        Some([_, dimension]) if !is_other_dimension(dimension) => Ok(()),
        _ => Err(SqlError::unsupported(FIRST_DIMENSION)),
    }
}

const FIRST_DIMENSION: &str =
    "generate_subscripts is supported for the first dimension, in its order";

/// Whether a number is written that is not the first dimension's.
fn is_other_dimension(dimension: &Expr) -> bool {
    matches!(dimension, Expr::Value(value)
        if matches!(&value.value, Value::Number(digits, _) if digits != "1"))
}

/// `(jsonb_each(x)).key`.
pub fn part_of_set(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    let Expr::Nested(inner) = root else { return None };
    let Expr::Function(function) = &**inner else { return None };
    let [AccessExpr::Dot(Expr::Identifier(part))] = chain else { return None };
    let args = arguments(function)?;
    args.first()?;
    let columns = Set::of(&function.name)?.columns("", &args);
    columns.into_iter().find(|(name, _)| *name == folded(part)).map(|(_, expr)| expr)
}

/// Gives the one column of `generate_series` the table's name, as PostgreSQL does. What is not said by the
/// statement alone, as a parameter or a column of a table to the left, makes a list first.
///
/// # Errors
/// None but those of our own making.
pub fn name_series(table: &mut TableFactor) -> Result<(), SqlError> {
    let (name, called, is_numbered, alias) = match table {
        TableFactor::Table { name, args: Some(called), with_ordinality, alias, .. } => {
            (name, &called.args, *with_ordinality, alias)
        }
        TableFactor::Function { name, args, with_ordinality: true, alias, .. } => {
            (name, &*args, true, alias)
        }
        _ => return Ok(()),
    };
    if !is_named(name, generate_series::NAME) {
        return Ok(());
    }
    let plain =
        |ident: Ident| TableAlias { explicit: true, name: ident, columns: Vec::new(), at: None };
    let alias = alias.get_or_insert_with(|| plain(Ident::new(generate_series::NAME)));
    let name = alias.name.clone();
    name_columns(alias, [name].into_iter().chain(is_numbered.then(|| Ident::new(ORDINALITY))));
    let plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let args: Option<Vec<Expr>> = called.iter().map(plain).collect();
    let Some(args) = args.filter(|args| is_numbered || args.iter().any(is_open)) else {
        return Ok(());
    };
    let alias = alias.clone();
    let made = rows(generate_series::LIST, &args.iter().collect::<Vec<_>>());
    let numbers = if is_numbered { numbers_of(&made) } else { None };
    let columns = [(generate_series::NAME.to_string(), made)].into_iter().chain(numbers);
    derive(table, columns.collect(), alias, true)
}

/// Gives the one column of `unnest(array) AS name` the table's name.
pub fn name_elements(table: &mut TableFactor) {
    let TableFactor::UNNEST { alias: Some(alias), array_exprs, with_ordinality, .. } = table else {
        return;
    };
    if array_exprs.len() == 1 && !*with_ordinality && alias.columns.is_empty() {
        let name = alias.name.clone();
        name_columns(alias, [name].into_iter());
    }
}

/// Names the columns of a table that its alias does not name.
fn name_columns(alias: &mut TableAlias, names: impl Iterator<Item = Ident>) {
    let named = alias.columns.len();
    let rest = names.skip(named).map(|name| TableAliasColumnDef { name, data_type: None });
    alias.columns.extend(rest);
}

/// The name of the column that numbers rows.
const ORDINALITY: &str = "ordinality";

/// Refuses `WITH ORDINALITY` where nothing numbers the rows.
///
/// # Errors
/// `0A000`.
pub fn check_numbered(table: &TableFactor) -> Result<(), SqlError> {
    match table {
        TableFactor::Table { with_ordinality: true, .. }
        | TableFactor::Function { with_ordinality: true, .. } => {
            Err(SqlError::unsupported("WITH ORDINALITY is known of what makes rows"))
        }
        _ => Ok(()),
    }
}

/// Whether an expression names a column or a parameter.
pub fn is_open(expr: &Expr) -> bool {
    struct Finder;
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                other if is_placeholder(other) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk(expr, &mut Finder).is_break()
}

/// `LATERAL unnest(array)` as `unnest(array)`, which may name columns of tables to the left without the word.
pub fn lateral_unnest(table: &mut TableFactor) {
    let TableFactor::Function { lateral: true, name, args, with_ordinality, alias, .. } = &*table
    else {
        return;
    };
    if !is_named(name, "unnest") {
        return;
    }
    let array = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    if let Some(array_exprs) = args.iter().map(array).collect::<Option<Vec<Expr>>>() {
        *table = TableFactor::UNNEST {
            alias: alias.clone(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: *with_ordinality,
        };
    }
}

/// Such a function as a table is a query of its columns, which may name those of tables to the left.
///
/// # Errors
/// When rows are to be numbered.
pub fn set_as_table(table: &mut TableFactor) -> Result<(), SqlError> {
    let (name, args, is_numbered, alias) = match &*table {
        TableFactor::Table { name, args: Some(called), with_ordinality, alias, .. } => {
            (name, &called.args, *with_ordinality, alias)
        }
        TableFactor::Function { name, args, with_ordinality, alias, .. } => {
            (name, args, *with_ordinality, alias)
        }
        _ => return Ok(()),
    };
    let set = Set::of(name);
    if set == Some(Set::Places) {
        let dimension = match args.as_slice() {
            [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(dimension))] => Some(dimension),
            _ => None,
        };
        if dimension.is_none_or(is_other_dimension) {
            return Err(SqlError::unsupported(FIRST_DIMENSION));
        }
    }
    let is_value = set.is_none()
        && (VALUES_AS_TABLES.iter().any(|one| is_named(name, one))
            || is_scalar_function(&name_of_last(name)));
    if set.is_none() && !is_value {
        return Ok(());
    }
    let plain = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    let args: Option<Vec<&Expr>> = args.iter().map(plain).collect();
    let Some(args) = args.filter(|args| is_value || !args.is_empty()) else {
        let words = format!("{name} takes other arguments");
        return Err(SqlError::new("42883", words));
    };
    // It stands there twice, and would do so within itself.
    if args.iter().any(|arg| has_query(arg)) {
        let words = "a function that makes rows of a subquery is not known here: name the subquery in \
                     WITH or FROM";
        return Err(SqlError::unsupported(words));
    }
    if is_numbered && is_value {
        return Err(SqlError::unsupported("WITH ORDINALITY is known of what makes rows"));
    }
    let alias = alias.clone().unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', name_of_last(name)),
        columns: Vec::new(),
        at: None,
    });
    // A function of one column calls it as the table is called.
    let only = folded(&alias.name);
    let mut columns = match set {
        Some(set) => set.columns(&only, &args),
        None => vec![(only, call(&name_of_last(name), args.into_iter().cloned().collect()))],
    };
    if let Some((_, rows)) = columns.first().filter(|_| is_numbered) {
        columns.extend(numbers_of(rows));
    }
    let mut alias = alias;
    if !alias.columns.is_empty() {
        let names = columns.iter().map(|(name, _)| Ident::with_quote('"', name));
        name_columns(&mut alias, names.collect::<Vec<_>>().into_iter());
    }
    derive(table, columns, alias, set.is_some())
}

/// Makes a table of a query of columns; `lateral` says whether they may be of tables to the left.
fn derive(
    table: &mut TableFactor,
    columns: Vec<(String, Expr)>,
    alias: TableAlias,
    lateral: bool,
) -> Result<(), SqlError> {
    let item =
        |(name, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
    let Some(subquery) = query_of(columns.into_iter().map(item).collect()) else {
        return Err(SqlError::unexpected("a query that is none"));
    };
    *table = TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None };
    Ok(())
}

/// What numbers the rows of a list from 1.
fn numbers_of(rows_of: &Expr) -> Option<(String, Expr)> {
    let Expr::Function(function) = rows_of else { return None };
    let list = only_argument(function)?;
    if !is_named(&function.name, "unnest") {
        return numbers_of(list);
    }
    let one = Expr::Value(Value::Number("1".into(), false).into());
    let count = call("cardinality", vec![list.clone()]);
    Some((ORDINALITY.to_string(), rows(generate_series::LIST, &[&one, &count])))
}

/// `unnest(array) WITH ORDINALITY` as a query of both columns; without, DataFusion has it.
///
/// # Errors
/// Of several arrays.
pub fn numbered_array(table: &mut TableFactor) -> Result<(), SqlError> {
    let TableFactor::UNNEST { array_exprs, with_ordinality: true, alias, .. } = &*table else {
        return Ok(());
    };
    let [array] = array_exprs.as_slice() else {
        return numbered_arrays(table);
    };
    let mut alias = alias.clone().unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::new("unnest"),
        columns: Vec::new(),
        at: None,
    });
    if !alias.columns.is_empty() {
        let names = [alias.name.clone(), Ident::new(ORDINALITY)];
        name_columns(&mut alias, names.into_iter());
    }
    let elements = call("unnest", vec![array.clone()]);
    let numbers = numbers_of(&elements);
    let columns = [(folded(&alias.name), elements)].into_iter().chain(numbers).collect();
    derive(table, columns, alias, true)
}

/// The same of several arrays, whose rows are as many as the longest has elements.
fn numbered_arrays(table: &mut TableFactor) -> Result<(), SqlError> {
    let TableFactor::UNNEST { array_exprs, alias, .. } = &*table else { return Ok(()) };
    let name = || Ident::new("unnest");
    // All have one name; what is behind the NUL is not shown.
    let named = |at| Ident::with_quote('"', format!("unnest\0{at}"));
    let mut alias = alias.clone().unwrap_or_else(|| TableAlias {
        explicit: true,
        name: name(),
        columns: Vec::new(),
        at: None,
    });
    let names = (0..array_exprs.len()).map(named).chain([Ident::new(ORDINALITY)]);
    name_columns(&mut alias, names.collect::<Vec<_>>().into_iter());
    let lengths = array_exprs.iter().map(|one| call("cardinality", vec![one.clone()]));
    let longest = call("greatest", lengths.collect());
    let one = Expr::Value(Value::Number("1".into(), false).into());
    let numbers = rows(generate_series::LIST, &[&one, &longest]);
    let elements = array_exprs.iter().map(|one| call("unnest", vec![one.clone()]));
    let columns = elements.chain([numbers]).enumerate();
    let columns = columns.map(|(at, expr)| (format!("column{at}"), expr)).collect();
    derive(table, columns, alias, true)
}

/// Reads `LATERAL f(x)` as `f(x)`: a function may read columns of tables to the left.
pub fn without_lateral(table: &mut TableFactor) {
    if let TableFactor::Function { lateral: true, name, args, with_ordinality, alias } = table {
        *table = TableFactor::Table {
            name: name.clone(),
            alias: alias.take(),
            args: Some(TableFunctionArgs { args: std::mem::take(args), settings: None }),
            with_hints: Vec::new(),
            version: None,
            with_ordinality: *with_ordinality,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        };
    }
}

/// Reads `pg_catalog.unnest(array)` as `unnest(array)`, which the parser knows, and names its column.
pub fn read_unnest(table: &mut TableFactor) {
    if let TableFactor::Table { name, args: Some(called), with_ordinality, alias, .. } = table
        && is_named(name, "unnest")
    {
        let plain = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        };
        let Some(array_exprs) = called.args.iter().map(plain).collect::<Option<Vec<_>>>() else {
            return;
        };
        *table = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: *with_ordinality,
        };
    }
    if let TableFactor::UNNEST { alias: alias @ None, array_exprs, .. } = table
        && array_exprs.len() == 1
    {
        *alias = Some(TableAlias {
            explicit: true,
            name: Ident::new("unnest"),
            columns: Vec::new(),
            at: None,
        });
    }
}

fn has_query(expr: &Expr) -> bool {
    struct Finder;
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    walk(expr, &mut Finder).is_break()
}

/// `SELECT items`.
fn query_of(items: Vec<SelectItem>) -> Option<Box<Query>> {
    let mut query = crate::parse::rewrite::expressions::query("SELECT 1")?;
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let plain: &mut Select = select;
    plain.projection = items;
    Some(query)
}

/// Functions without arguments, and the tables of `pg_catalog` that have their rows.
const CATALOG_FUNCTIONS: &[(&str, &str)] = &[
    (KEYWORDS, KEYWORDS),
    ("pg_available_extensions", "pg_available_extensions"),
    ("pg_cursor", "pg_cursors"),
    ("pg_lock_status", "pg_locks"),
    ("pg_prepared_statement", "pg_prepared_statements"),
    ("pg_show_all_settings", "pg_settings"),
    ("pg_timezone_abbrevs", "pg_timezone_abbrevs"),
    ("pg_timezone_names", "pg_timezone_names"),
];

/// `pg_get_keywords()` and its like as the tables of `pg_catalog` that have their rows.
pub fn words_as_table(table: &mut TableFactor) {
    if let TableFactor::Table { name, args, .. } = table
        && args.as_ref().is_some_and(|args| args.args.is_empty())
        && let Some((_, of)) =
            CATALOG_FUNCTIONS.iter().find(|(function, _)| is_named(name, function))
    {
        *args = None;
        *name = ObjectName::from(vec![Ident::new(CATALOG_SCHEMA), Ident::new(*of)]);
    }
}
