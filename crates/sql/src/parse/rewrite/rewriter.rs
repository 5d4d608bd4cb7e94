//! PostgreSQL's ways of saying what DataFusion knows by others, changed before it plans.
//!
//! What DataFusion would take for something else is refused.

use crate::functions::arrays::no_null_array::NO_NULL_ARRAY;
use crate::functions::gapfill::GAPFILL;
use crate::functions::generate_series;
use crate::functions::text::like_patterns::{ILIKE_PATTERN, LIKE_PATTERN};
use crate::parse::rewrite::balanced::balance_chain;
use crate::parse::rewrite::conditions::{read_conditions, read_parts};
use crate::parse::rewrite::expressions::{
    arguments, array_type, call, cast, instant, is_named, is_now, is_placeholder, literal,
    numeral_of, text_array, text_literal, text_or_null,
};
use crate::parse::rewrite::functions::calls::{
    array_of_query, renamed, rounded, width_as_interval,
};
use crate::parse::rewrite::functions::gapfill::{place_arguments, place_bucket};
use crate::parse::rewrite::functions::phrases::phrase;
use crate::parse::rewrite::functions::points::points_as_table;
use crate::parse::rewrite::functions::promscale::{API_SCHEMA, matched, promscale};
use crate::parse::rewrite::functions::toolkit;
use crate::parse::rewrite::open_arguments::{parameter_types, read_literals};
use crate::parse::rewrite::operators::{
    bind_tightly, bound_pattern, check_escape, dot_is_any, escape_by_backslash, operator_of,
    sign_before_power,
};
use crate::parse::rewrite::queries::named_rows::{count_row_texts, name_json_rows};
use crate::parse::rewrite::queries::nothing::{
    answer_of_nothing, ask_nothing_of_nothing, end_recursion_without_rows, gives_nothing,
    without_other_types,
};
use crate::parse::rewrite::queries::query_forms::{
    change_forms, check_order_of_set, check_table, check_with, fetch_as_limit, join_laterals,
    values_as_queries, write_out_order,
};
use crate::parse::rewrite::queries::record_sets::records_as_query;
use crate::parse::rewrite::queries::row_values;
use crate::parse::rewrite::queries::row_values::{check_counted_rows, find_rows};
use crate::parse::rewrite::queries::sets::{
    check_numbered, check_subscripts, lateral_unnest, name_elements, name_series, numbered_array,
    part_of_set, read_unnest, set_as_table, set_in_list, without_lateral, words_as_table,
};
use crate::parse::rewrite::queries::subqueries::{case_of_jsonb, exists_as_count, one_row};
use crate::parse::rewrite::queries::system_columns::write_out_system_columns;
use crate::parse::rewrite::queries::windows::write_out_windows;
use crate::parse::rewrite::rules;
use crate::parse::rewrite::special_array_casts::special_array;
use crate::parse::rewrite::told_apart::tell_casts_apart;
use crate::parse::rewrite::types::{
    arrow_type, catalog_cast, check_length, compare_type_numbers, is_float, is_numeric, is_oids,
    json_cast, limited_interval, makes_json, name_of_object, numbers_of_objects, numeric_limits,
    rounded_time, text_of_length, texts, without_length,
};
use crate::parse::rewrite::values::bit_strings::read_bit_string;
use crate::parse::rewrite::values::like_lists::compare_with_each;
use crate::parse::rewrite::values::moments::{
    interval_of_fields, moment, read_interval, with_seconds,
};
use crate::parse::rewrite::values::numerals::{
    change_sign, parts_with_types, rows_of_set_with_types, selected_with_types, series_with_types,
    without_exponent,
};
use crate::parse::rewrite::values::periods::write_out_overlaps;
use crate::parse::rewrite::values::quantified::{any_as_all, as_membership};
use crate::parse::rewrite::values::simple_case::write_comparisons;
use crate::parse::rewrite::values::vectors::{
    array_slice, count_from_1, null_at_negative_places, subscripts_as_fields, vector_call,
    vector_part, vectors_as_tables,
};
use crate::tables::metrics::promql_tables::FUNCTIONS;
use crate::tables::metrics::tables::Column;
use crate::types::casts::array_casts::read_text;
use crate::types::error::SqlError;
use crate::types::names;
use crate::types::names::{CATALOG_SCHEMA, folded, name_of_last};
use crate::types::numeric::conversions::LIST_LIMITS;
use crate::types::parameter_types::{JSONB_PARAMETER, UUID_PARAMETER};
use crate::types::text::bytea_text::BYTEA_IN;
use crate::types::time::interval_texts::interval_text;
use crate::types::time::intervals::INTERVAL;
use crate::types::traversal::{walk, walk_mut};
use crate::types::uuids::UUID_IN;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType as SqlType, ExactNumberInfo, Expr,
    Function, FunctionArguments, Ident, LimitClause, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SetExpr, Statement, TableFactor, Value, ValueWithSpan, Visitor, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::parse::rewrite::queries::outer_relations::{
    name_outer_columns, name_schemas_of_wildcards,
};

/// The schemas that relations and functions are named with.
const SCHEMAS: &[&str] = &[CATALOG_SCHEMA, "information_schema", "public", API_SCHEMA];
/// The function that rounds a `numeric` to the precision and scale of its type.
const NUMERIC_LIMITS: &str = "pg_numeric_limits";
/// Steps into an expression that a statement may take.
const DEPTH_MAX: usize = 500;
/// Queries within expressions of queries within expressions: planning looks at each of them twice.
const VALUE_QUERIES_MAX: usize = 8;

/// Types of parameters that the planner does not find by itself.
pub type Hints = BTreeMap<String, DataType>;

/// What is known of a statement that was changed.
#[derive(Debug)]
pub struct Rewritten {
    /// What it says of its parameters' types.
    pub hints: Hints,
    /// All its parameters; some may be gone from the plan, with what was not asked after all.
    pub parameters: BTreeSet<String>,
    /// Whether its plan says the same at another time.
    pub is_reusable: bool,
}

/// A value as it is inserted into a column of samples.
pub fn cast_to(expr: Expr, column: Column) -> Expr {
    let wanted = match column {
        Column::Sample | Column::Name => SqlType::Text,
        Column::Time => instant(),
        Column::Value => SqlType::DoublePrecision,
        Column::SeriesId => SqlType::BigInt(None),
        Column::Labels => SqlType::JSONB,
    };
    cast(expr, wanted)
}

/// Changes a statement to what DataFusion knows.
///
/// # Errors
/// What cannot be said to DataFusion, and what is too deep.
pub fn rewrite(statement: &mut Statement) -> Result<Rewritten, SqlError> {
    rules::check(statement)?;
    let mut seen = Parameters::default();
    let _: ControlFlow<()> = walk(statement, &mut seen);
    let mut rewriter =
        Rewriter { hints: Hints::new(), is_reusable: true, depth: 0, value_queries: 0, queries: 0 };
    match walk_mut(statement, &mut rewriter) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => {
            let Rewriter { hints, is_reusable, .. } = rewriter;
            Ok(Rewritten { hints, parameters: seen.0, is_reusable })
        }
    }
}

/// The names of a statement's parameters.
#[derive(Default)]
struct Parameters(BTreeSet<String>);

impl Visitor for Parameters {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        if let Value::Placeholder(name) = &value.value {
            self.0.insert(name.clone());
        }
        ControlFlow::Continue(())
    }
}

/// A relation's number is shown as its name.
fn as_shown(items: &mut [SelectItem]) {
    for item in items {
        if let SelectItem::ExprWithAlias { expr, .. } = item
            && let Expr::Cast { expr: inner, data_type: SqlType::Regclass, .. } = &*expr
            && literal(inner).is_some()
        {
            *expr = call("to_regclass", vec![expr.clone()]);
        }
    }
}

/// Calls that are others here.
fn in_other_words(expr: &mut Expr) -> Result<(), SqlError> {
    if let Expr::BinaryOp { op, left, right } = expr
        && let Some(asked) = toolkit::asked(op, left, right)
    {
        *expr = Expr::Function(asked);
    }
    if let Expr::Function(function) = expr
        && let Some(changed) = other_call(function)?
    {
        *expr = changed;
    }
    if let Expr::Function(function) = expr
        && let Some(changed) = toolkit::rephrased(function)?
    {
        *expr = changed;
    }
    Ok(())
}

/// What a call is in DataFusion's words, if it is another one.
fn other_call(function: &Function) -> Result<Option<Expr>, SqlError> {
    check_subscripts(function)?;
    let own = promscale(function)?.or_else(|| set_in_list(function));
    let own = own.or_else(|| vector_call(function));
    Ok(own.or_else(|| renamed(function)))
}

/// Whether an expression is a query, or asks one.
fn is_value_query(expr: &Expr) -> bool {
    match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
        Expr::Function(function) => matches!(function.args, FunctionArguments::Subquery(_)),
        _ => false,
    }
}

struct Rewriter {
    hints: Hints,
    is_reusable: bool,
    depth: usize,
    /// Those of them whose expression they are in.
    value_queries: usize,
    /// Queries around the one that is looked at.
    queries: usize,
}

impl VisitorMut for Rewriter {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        values_as_queries(query);
        end_recursion_without_rows(query);
        let checked = check_with(query).and_then(|()| fetch_as_limit(query));
        let checked = checked.and_then(|()| check_order_of_set(query));
        if let Err(error) = checked.and_then(|()| write_out_order(query, self.queries == 0)) {
            return ControlFlow::Break(Box::new(error));
        }
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
            let exprs = limit.iter_mut().chain(offset.as_mut().map(|offset| &mut offset.value));
            for expr in exprs {
                self.hint(expr, DataType::Int64);
                // Drivers that put values into the text put them into quotes.
                if let Some(number) = literal(expr).filter(|text| text.parse::<u64>().is_ok()) {
                    *expr = Expr::Value(Value::Number(number, false).into());
                }
                if let Some(whole) = rounded(expr) {
                    *expr = whole;
                }
            }
        }
        rows_of_set_with_types(&mut query.body);
        if matches!(&*query.body, SetExpr::Select(select) if gives_nothing(select)) {
            query.order_by = None;
        }
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        name_schemas_of_wildcards(select);
        join_laterals(select);
        write_out_system_columns(select);
        let checked = change_forms(select).and_then(|()| read_conditions(select));
        let checked = checked.and_then(|()| check_counted_rows(select));
        let checked = checked.and_then(|()| find_rows(select));
        if let Err(error) = checked.and_then(|()| write_out_windows(select)) {
            return ControlFlow::Break(Box::new(error));
        }
        if 1 < self.queries {
            name_outer_columns(select);
        }
        names::name_columns(&mut select.projection, self.queries == 1);
        if self.queries == 1 {
            as_shown(&mut select.projection);
        }
        selected_with_types(&mut select.projection);
        tell_casts_apart(select);
        ask_nothing_of_nothing(select);
        exists_as_count(select);
        vectors_as_tables(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        points_as_table(table);
        if let Err(error) = check_table(table) {
            return ControlFlow::Break(Box::new(error));
        }
        if let TableFactor::Table { name, args: Some(_), .. } = table
            && let [ObjectNamePart::Identifier(schema), _] = name.0.as_slice()
            && [CATALOG_SCHEMA, API_SCHEMA].contains(&schema.value.as_str())
        {
            name.0.remove(0);
        }
        without_lateral(table);
        read_unnest(table);
        lateral_unnest(table);
        records_as_query(table);
        words_as_table(table);
        series_with_types(table);
        let called = match table {
            TableFactor::Table { name, args: Some(_), .. } => Some(name),
            TableFactor::Function { name, .. } => Some(name),
            _ => None,
        };
        // Their arguments may say when it is.
        let asks = |name: &&mut ObjectName| {
            is_named(name, generate_series::NAME)
                || FUNCTIONS.iter().any(|(one, _)| is_named(name, one))
        };
        self.is_reusable &= called.filter(asks).is_none();
        let made = name_series(table).and_then(|()| set_as_table(table));
        let made = made.and_then(|()| numbered_array(table));
        name_elements(table);
        match made.and_then(|()| check_numbered(table)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<Self::Break> {
        // A relation of the database, whichever name it is asked for by.
        if let [ObjectNamePart::Identifier(_), ObjectNamePart::Identifier(schema), _] =
            name.0.as_slice()
            && SCHEMAS.contains(&folded(schema).as_str())
        {
            name.0.remove(0);
        }
        // PostgreSQL looks into its own schema first.
        if let [ObjectNamePart::Identifier(ident)] = name.0.as_slice()
            && ident.value.to_ascii_lowercase().starts_with("pg_")
        {
            name.0.insert(0, ObjectNamePart::Identifier(Ident::new(CATALOG_SCHEMA)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        balance_chain(expr);
        write_out_overlaps(expr);
        if let Err(error) = read_bit_string(expr) {
            return ControlFlow::Break(Box::new(error));
        }
        write_comparisons(expr);
        without_other_types(expr);
        sign_before_power(expr);
        if let Expr::Function(function) = expr {
            name_json_rows(function);
        }
        subscripts_as_fields(expr);
        // Before the function within becomes rows by itself.
        if let Expr::CompoundFieldAccess { root, access_chain } = &*expr
            && let Some(changed) =
                part_of_set(root, access_chain).or_else(|| vector_part(root, access_chain))
        {
            *expr = changed;
        }
        if let Expr::CompoundFieldAccess { root, access_chain } = expr {
            count_from_1(root, access_chain);
            null_at_negative_places(access_chain);
        }
        self.depth += 1;
        self.value_queries += usize::from(is_value_query(expr));
        let message = if DEPTH_MAX < self.depth {
            format!("an expression of more than {DEPTH_MAX} steps into each other")
        } else if VALUE_QUERIES_MAX < self.value_queries {
            format!("queries within expressions, more than {VALUE_QUERIES_MAX} in each other")
        } else {
            return ControlFlow::Continue(());
        };
        ControlFlow::Break(Box::new(SqlError::new("54001", message)))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        self.value_queries -= usize::from(is_value_query(expr));
        match self.change(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

impl Rewriter {
    fn hint(&mut self, expr: &Expr, data_type: DataType) {
        if let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = expr {
            self.hints.insert(name.clone(), data_type);
        }
    }

    /// A text that is matched with a pattern.
    fn like(&mut self, function: &str, text: &Expr, pattern: &mut Expr) {
        self.hint(text, DataType::Utf8View);
        self.hint(pattern, DataType::Utf8View);
        bound_pattern(function, text, pattern);
    }

    /// Of `(labels->>key = value) IS TRUE`: both are texts.
    fn hint_label(&mut self, expr: &Expr) {
        let (Expr::IsTrue(inner) | Expr::IsNotTrue(inner)) = expr else { return };
        let Expr::Nested(inner) = &**inner else { return };
        let Expr::BinaryOp { left, right, .. } = &**inner else { return };
        self.hint(right, DataType::Utf8View);
        if let Expr::Nested(inner) = &**left
            && let Expr::BinaryOp { right: key, .. } = &**inner
        {
            self.hint(key, DataType::Utf8View);
        }
    }

    fn change(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        let is_json = makes_json(expr);
        self.change_words(expr)?;
        if is_json {
            *expr = cast(expr.clone(), SqlType::JSON);
        }
        Ok(())
    }

    fn change_words(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        if compare_with_each(expr, &mut |one| self.change_words(one))? {
            return Ok(());
        }
        parts_with_types(expr);
        read_parts(expr)?;
        match expr {
            Expr::Function(function) if is_named(&function.name, "array") => {
                if let Some(changed) = array_of_query(function) {
                    *expr = changed;
                    self.change_words(expr)?;
                    // Instead of a query of tables without rows.
                    if matches!(expr, Expr::Value(_)) {
                        *expr = cast(expr.clone(), text_array());
                    }
                    *expr = call(NO_NULL_ARRAY, vec![expr.clone()]);
                    return Ok(());
                }
            }
            Expr::Function(function) => self.function(function)?,
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
                if digits.contains(['e', 'E']) =>
            {
                *expr = without_exponent(digits);
            }
            Expr::Cast { .. } => self.cast(expr)?,
            Expr::Collate { expr: inner, .. } => *expr = (**inner).clone(),
            Expr::BinaryOp { .. } => self.operator(expr),
            Expr::AnyOp { .. } | Expr::AllOp { .. } => self.any_of(expr),
            Expr::Case { .. } => case_of_jsonb(expr),
            Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => bind_tightly(expr),
            Expr::Interval(interval) => match interval_of_fields(interval) {
                Some(limited) => *expr = limited,
                None => read_interval(interval),
            },
            Expr::UnaryOp { .. } => change_sign(expr),
            Expr::TypedString(_) => self.typed_string(expr)?,
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let Some(slice) = array_slice(root, access_chain) {
                    *expr = slice;
                }
            }
            Expr::Subquery(query) => {
                if let Some(answer) = answer_of_query(query) {
                    *expr = answer;
                }
            }
            Expr::Like { expr, pattern, escape_char, .. } => {
                check_escape(escape_char.as_ref())?;
                escape_by_backslash(pattern, escape_char.take());
                self.like(LIKE_PATTERN, expr, pattern);
            }
            Expr::ILike { expr, pattern, escape_char, .. } => {
                check_escape(escape_char.as_ref())?;
                escape_by_backslash(pattern, escape_char.take());
                self.like(ILIKE_PATTERN, expr, pattern);
            }
            _ => {}
        }
        compare_type_numbers(expr);
        if let Some(changed) = row_values::compared(expr)? {
            *expr = changed;
        }
        if let Some(changed) = phrase(expr)? {
            *expr = changed;
        }
        in_other_words(expr)
    }

    /// `date '2024-01-01'` is a cast.
    fn typed_string(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        let Expr::TypedString(typed) = &*expr else { return Ok(()) };
        let value = Box::new(Expr::Value(typed.value.clone()));
        let data_type = typed.data_type.clone();
        let (kind, array, format) = (CastKind::Cast, false, None);
        *expr = Expr::Cast { kind, expr: value, data_type, array, format };
        self.cast(expr)
    }

    fn function(&mut self, function: &mut Function) -> Result<(), SqlError> {
        let parts = &mut function.name.0;
        if let [ObjectNamePart::Identifier(schema), _] = parts.as_slice()
            && SCHEMAS.contains(&folded(schema).as_str())
        {
            parts.remove(0);
        }
        if function.over.is_some() && is_named(&function.name, "string_agg") {
            let words = "string_agg as a window function is not known here: each row would have its \
                         own text";
            return Err(SqlError::unsupported(words));
        }
        toolkit::unordered(function);
        place_bucket(function)?;
        width_as_interval(function);
        count_row_texts(function);
        place_arguments(function)?;
        if is_named(&function.name, GAPFILL)
            && let Some([width, _, start, finish]) = arguments(function).as_deref()
        {
            self.hint(width, INTERVAL);
            let time = arrow_type(&instant()).unwrap_or(DataType::Null);
            self.hint(start, time.clone());
            self.hint(finish, time);
        }
        let name = name_of_last(&function.name);
        if name.starts_with("pg_") && name.contains("advisory") {
            let args = arguments(function).unwrap_or_default();
            args.into_iter().for_each(|arg| self.hint(arg, DataType::Int64));
        }
        if is_named(&function.name, "time_bucket")
            && let Some([width, ..]) = arguments(function).as_deref()
        {
            self.hint(width, INTERVAL);
        }
        for (parameter, ty) in parameter_types(function) {
            self.hints.entry(parameter).or_insert(ty);
        }
        read_literals(function, |expr| self.cast(expr))
    }

    fn cast(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        let Expr::Cast { expr: inner, data_type, .. } = expr else { return Ok(()) };
        without_length(data_type);
        let listed = array_parameter_type(data_type);
        if let Some(known) = listed.or_else(|| arrow_type(data_type)) {
            let is_whole = known.is_integer();
            self.hint(inner, known);
            if let Some(whole) = rounded(inner).filter(|_| is_whole) {
                **inner = whole;
            }
        }
        if is_numeric(data_type) || is_float(data_type) {
            // With all its digits, and with each exponent.
            if let Some(numeral) = numeral_of(inner) {
                **inner = text_literal(numeral);
            }
        }
        if let Some((precision, scale)) = numeric_limits(data_type)? {
            let number = |one: i64| Expr::Value(Value::Number(one.to_string(), false).into());
            let value = cast((**inner).clone(), SqlType::Numeric(ExactNumberInfo::None));
            *expr = call(NUMERIC_LIMITS, vec![value, number(precision), number(scale)]);
            return Ok(());
        }
        if let Some(moment) = literal(inner).and_then(|text| moment(&text, data_type)) {
            **inner = moment;
        }
        if let Some(whole) = literal(inner).and_then(|text| with_seconds(&text, data_type)) {
            **inner = text_literal(whole);
        }
        if let Some(rounded) = rounded_time(inner, data_type) {
            *expr = rounded;
            return Ok(());
        }
        match data_type {
            SqlType::JSONB | SqlType::JSON => *expr = json_cast(inner, data_type)?,
            SqlType::Array(_) => return array_cast(expr),
            SqlType::Interval { .. } => {
                if let Some(limited) = limited_interval(inner, data_type) {
                    *expr = limited;
                } else if let Some(text) = literal(inner) {
                    **inner = text_literal(interval_text(&text));
                }
            }
            SqlType::Uuid => {
                self.hint(inner, UUID_PARAMETER);
                *expr = call(UUID_IN, vec![(**inner).clone()]);
            }
            SqlType::Bytea => *expr = call(BYTEA_IN, vec![(**inner).clone()]),
            SqlType::Custom(name, _) => {
                let Some(changed) = catalog_cast(name, inner) else { return Ok(()) };
                *expr = changed;
            }
            SqlType::Regclass => *expr = call("to_regclass", vec![(**inner).clone()]),
            SqlType::Text | SqlType::Varchar(None) if let Some(name) = name_of_object(inner) => {
                *expr = name;
            }
            _ => {
                check_length(data_type)?;
                if let Some(cut) = text_of_length(inner, data_type) {
                    *expr = cut;
                }
            }
        }
        Ok(())
    }

    fn operator(&mut self, expr: &mut Expr) {
        let Expr::BinaryOp { op, left, right } = expr else { return };
        if let (BinaryOperator::Question, Some(changed)) = (&*op, matched(left, right)) {
            self.hint_label(&changed);
            *expr = changed;
            return;
        }
        if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
            let plain = parts.last().map(String::as_str).unwrap_or_default();
            if let Some(known) = operator_of(plain) {
                *op = known;
            }
        }
        if *op == BinaryOperator::StringConcat {
            for side in [left, right] {
                if let Some(name) = name_of_object(side) {
                    **side = name;
                }
            }
            return;
        }
        match op {
            BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch => dot_is_any(right),
            BinaryOperator::PGLikeMatch | BinaryOperator::PGNotLikeMatch => {
                self.like(LIKE_PATTERN, left, right);
            }
            BinaryOperator::PGILikeMatch | BinaryOperator::PGNotILikeMatch => {
                self.like(ILIKE_PATTERN, left, right);
            }
            BinaryOperator::AtArrow => self.hint(right, JSONB_PARAMETER),
            BinaryOperator::LongArrow | BinaryOperator::Question => {
                self.hint(right, DataType::Utf8View);
            }
            BinaryOperator::Minus | BinaryOperator::Plus if is_now(left) => {
                self.hint(right, INTERVAL);
            }
            _ => {}
        }
    }

    /// `x = ANY('{a,b}')` is `x IN ('a', 'b')`, which the index answers.
    fn any_of(&mut self, expr: &mut Expr) {
        if let Some(changed) = any_as_all(expr) {
            *expr = changed;
            return;
        }
        let (left, right, negated) = match expr {
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
            _ => return,
        };
        let mut inner = &**right;
        while let Expr::Nested(nested) = inner {
            inner = nested;
        }
        if !is_placeholder(inner) && !matches!(inner, Expr::Subquery(_)) {
            self.hint(inner, texts());
        }
        if let Some(changed) = as_membership(left, inner, negated) {
            *expr = changed;
        }
    }
}

/// The type of a parameter that is cast to `uuid[]` or `jsonb[]`, whose elements arrow has as texts; none of others.
fn array_parameter_type(data_type: &SqlType) -> Option<DataType> {
    let SqlType::Array(ArrayElemTypeDef::SquareBracket(of, _)) = data_type else { return None };
    let element = match **of {
        SqlType::Uuid => UUID_PARAMETER,
        SqlType::JSONB => JSONB_PARAMETER,
        _ => return None,
    };
    Some(DataType::new_list(element, true))
}

/// Reads a literal that is cast to an array, and casts to the types that arrow has as texts by functions.
fn array_cast(expr: &mut Expr) -> Result<(), SqlError> {
    let Expr::Cast { expr: inner, data_type, .. } = expr else { return Ok(()) };
    let of = match data_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(of, _)) => Some(&**of),
        _ => None,
    };
    if let Some(numbers) = of.and_then(|of| numbers_of_objects(inner, of)) {
        *expr = numbers;
        return Ok(());
    }
    if let Some((precision, scale)) = of.map(numeric_limits).transpose()?.flatten() {
        let number = |one: i64| Expr::Value(Value::Number(one.to_string(), false).into());
        let mut all = cast((**inner).clone(), array_type(SqlType::Numeric(ExactNumberInfo::None)));
        array_cast(&mut all)?;
        *expr = call(LIST_LIMITS, vec![all, number(precision), number(scale)]);
        return Ok(());
    }
    if let Some(text) = literal(inner) {
        let elements = read_text(&text)?.into_iter().map(text_or_null);
        **inner = Expr::Array(Array { elem: elements.collect(), named: true });
    }
    if let Some(read) = special_array(inner, data_type) {
        *expr = read;
    } else if is_oids(data_type) {
        *data_type = array_type(SqlType::Int(None));
    }
    Ok(())
}

/// The value of a query without rows to read, or of one row.
fn answer_of_query(query: &mut Query) -> Option<Expr> {
    let answer = match &*query.body {
        SetExpr::Select(select) => answer_of_nothing(select),
        _ => None,
    };
    answer.or_else(|| one_row(query))
}
