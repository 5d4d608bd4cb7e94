//! Functions about the session and about PostgreSQL's own tables.

use crate::catalog::keys;
use crate::catalog::names::{DATABASE, ROLE};
use crate::catalog::relations::{Relation, schema_name, schema_oid};
use crate::catalog::system_catalog::Catalog;
use crate::tables::heap::columns::INTERVAL_FIELDS;
use crate::tables::heap::view::View;
use crate::types::casts::cast_functions::{REGNAMESPACE, REGTYPE};
use crate::types::error::SqlError;
use crate::types::facts::Facts;
use crate::types::function;
use crate::types::keywords::quoted_ident;
use crate::types::names::quoted_literal;
use crate::types::postgres_types::{of_arrow, oid_of, type_name};
use crate::types::time::zones::ZONE;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int32Builder, ListArray, ListBuilder, StringViewArray,
    StringViewBuilder, new_empty_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int32Type, Int64Type};
use datafusion::common::cast::as_string_view_array;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use datafusion::prelude::SessionContext;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

/// A function that takes anything, and may say something else in the next statement.
fn function(
    name: &'static str,
    returns: DataType,
    work: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    function::function(name, anything(), move |_| returns.clone(), work)
}

fn anything() -> Signature {
    let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
    Signature::one_of(any, Volatility::Stable)
}

/// One that always says the same.
fn constant(name: &'static str, value: ScalarValue) -> ScalarUDF {
    function(name, value.data_type(), move |_, rows| value.to_array_of_size(rows))
}

fn text(text: &str) -> ScalarValue {
    ScalarValue::Utf8View(Some(text.to_string()))
}

fn yes(yes: bool) -> ScalarValue {
    ScalarValue::Boolean(Some(yes))
}

/// Functions that return NULL: they describe objects of kinds that are not here.
const NULLS: &[&str] = &[
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_triggerdef",
    "pg_get_functiondef",
    "pg_get_function_result",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_sqlbody",
    "pg_get_function_arg_default",
    "pg_get_statisticsobjdef_columns",
    "obj_description",
    "col_description",
    "shobj_description",
    "inet_server_addr",
    "inet_client_addr",
];
/// Functions that return true: the one role sees and may do everything.
const TRUTHS: &[&str] = &[
    "pg_table_is_visible",
    "pg_type_is_visible",
    "pg_function_is_visible",
    "pg_operator_is_visible",
    "pg_opclass_is_visible",
    "pg_opfamily_is_visible",
    "pg_conversion_is_visible",
    "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible",
    "pg_ts_parser_is_visible",
    "pg_ts_template_is_visible",
    "has_any_column_privilege",
    "has_language_privilege",
    "has_parameter_privilege",
    "has_sequence_privilege",
    "has_tablespace_privilege",
    "has_type_privilege",
    "has_foreign_data_wrapper_privilege",
    "has_server_privilege",
    "pg_collation_is_visible",
    "pg_statistics_obj_is_visible",
    "has_table_privilege",
    "has_schema_privilege",
    "has_database_privilege",
    "has_column_privilege",
    "has_function_privilege",
    "pg_has_role",
];
/// Functions that return false.
const FALSEHOODS: &[&str] = &[
    "pg_is_in_recovery",
    "pg_is_wal_replay_paused",
    "pg_relation_is_publishable",
    "pg_is_other_temp_schema",
];
/// Functions of sizes that nothing counts: samples belong to no relation.
const SIZES: &[&str] = &[
    "pg_relation_size",
    "pg_table_size",
    "pg_indexes_size",
    "pg_total_relation_size",
    "pg_database_size",
    "pg_tablespace_size",
    "pg_stat_get_numscans",
];

/// Functions that say the same to everybody.
fn constants() -> Vec<ScalarUDF> {
    let none = || ScalarValue::Utf8View(None);
    let mut all = Vec::new();
    for name in NULLS {
        all.push(constant(name, none()));
    }
    for name in TRUTHS {
        all.push(constant(name, yes(true)));
    }
    for name in FALSEHOODS {
        all.push(constant(name, yes(false)));
    }
    all.push(constant("pg_column_is_updatable", yes(true)));
    all.push(constant("pg_my_temp_schema", ScalarValue::Int32(Some(0))));
    all.push(constant("pg_tablespace_location", text("")));
    all.push(constant("pg_char_to_encoding", ScalarValue::Int32(Some(UTF8_ENCODING))));
    let list = ListArray::new(
        Arc::new(Field::new_list_field(privilege(), true)),
        OffsetBuffer::from_lengths([0]),
        new_empty_array(&privilege()),
        None,
    );
    let list = ScalarValue::List(Arc::new(list));
    all.push(constant(NO_PRIVILEGES, list));
    // No object has a list of privileges.
    let privileges = ScalarValue::new_list_nullable(&[], &DataType::Utf8View);
    let none = ScalarValue::try_new_null(privileges.data_type()).unwrap_or(ScalarValue::Null);
    all.push(constant("acldefault", none));
    // Statements wait for no locks of others.
    let nobody = ScalarValue::new_list_nullable(&[], &DataType::Int32);
    all.push(constant("pg_blocking_pids", ScalarValue::List(nobody.clone())));
    all.push(constant("pg_safe_snapshot_blocking_pids", ScalarValue::List(nobody)));
    all.push(constant("pg_encoding_to_char", text("UTF8")));
    all.push(constant("getdatabaseencoding", text("UTF8")));
    all.push(constant("pg_client_encoding", text("UTF8")));
    all.push(constant("inet_server_port", ScalarValue::Int32(None)));
    all.push(constant("inet_client_port", ScalarValue::Int32(None)));
    all.push(constant("pg_get_userbyid", text(ROLE)));
    all.push(constant("current_schema", text("public")));
    for name in SIZES {
        all.push(constant(name, ScalarValue::Int64(None)));
    }
    all
}

/// The function of the entries of a list of privileges: an empty list.
pub const NO_PRIVILEGES: &str = "pg_no_privileges";

/// The type of an entry of a list of privileges, as `aclexplode` returns it.
fn privilege() -> DataType {
    DataType::Struct(Fields::from(vec![
        Field::new("grantor", DataType::Int32, true),
        Field::new("grantee", DataType::Int32, true),
        Field::new("privilege_type", DataType::Utf8View, true),
        Field::new("is_grantable", DataType::Boolean, true),
    ]))
}

/// PostgreSQL's number of the encoding UTF8.
const UTF8_ENCODING: i32 = 6;

fn strings(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(datafusion::arrow::compute::cast(array, &DataType::Utf8View)?)
}

/// The first argument, text by text.
fn by_text(
    name: &'static str,
    work: impl Fn(&str) -> Result<Option<String>> + Send + Sync + 'static,
) -> ScalarUDF {
    function(name, DataType::Utf8View, move |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments(name)) };
        let first = strings(first)?;
        let mut out = StringViewBuilder::with_capacity(rows);
        for one in as_string_view_array(&first)? {
            out.append_option(one.map(&work).transpose()?.flatten());
        }
        Ok(Arc::new(out.finish()))
    })
}

fn no_arguments(name: &str) -> DataFusionError {
    DataFusionError::Plan(format!("function {name}() does not exist"))
}

fn size_pretty(size: &str) -> Option<String> {
    let mut size: f64 = size.parse().ok()?;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if size.abs() < 10_240.0 {
            return Some(format!("{} {unit}", size.round()));
        }
        size /= 1024.0;
    }
    Some(format!("{} TB", size.round()))
}

/// `to_regclass` of what a session sees.
pub fn regclass(catalog: &Arc<Catalog>, view: &Arc<View>) -> ScalarUDF {
    let (catalog, view) = (catalog.clone(), view.clone());
    let relations = move || catalog.relations(&view.list());
    let oid = |relations: &[Relation], name: &str| {
        let plain = name.rsplit('.').next().unwrap_or(name).trim().trim_matches('"');
        let table = relations.iter().find(|one| one.name == plain).map(|one| one.oid);
        table.or_else(|| keys::named(relations).find(|(_, name)| name == plain).map(|(oid, _)| oid))
    };
    let name = |relations: &[Relation], oid: i64| {
        let found = relations.iter().find(|one| i64::from(one.oid) == oid);
        let table = found.map(|one| one.name.clone());
        let other =
            || keys::named(relations).find(|(one, _)| i64::from(*one) == oid).map(|(_, name)| name);
        table.or_else(other).map_or_else(|| oid.to_string(), |name| quoted_ident(&name))
    };
    // A number becomes the name, a name the number.
    let returns = |types: &[DataType]| match types.first() {
        Some(first) if first.is_integer() => DataType::Utf8View,
        _ => DataType::Int32,
    };
    function::function("to_regclass", anything(), returns, move |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("to_regclass")) };
        let relations = relations();
        if first.data_type().is_integer() {
            let numbers = datafusion::arrow::compute::cast(first, &DataType::Int64)?;
            let mut out = StringViewBuilder::with_capacity(rows);
            for one in numbers.as_primitive::<Int64Type>() {
                out.append_option(one.map(|one| name(&relations, one)));
            }
            return Ok(Arc::new(out.finish()));
        }
        let first = strings(first)?;
        let mut out = Int32Builder::with_capacity(rows);
        for one in as_string_view_array(&first)? {
            out.append_option(
                one.and_then(|one| oid(&relations, one).or_else(|| one.parse().ok())),
            );
        }
        Ok(Arc::new(out.finish()))
    })
}

/// Functions that say how keys of a session's tables were made.
pub fn about_keys(catalog: &Arc<Catalog>, view: &Arc<View>) -> Vec<ScalarUDF> {
    let relations = {
        let (catalog, view) = (catalog.clone(), view.clone());
        Arc::new(move || catalog.relations(&view.list()))
    };
    let known = relations.clone();
    let index = function("pg_get_indexdef", DataType::Utf8View, move |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("pg_get_indexdef")) };
        let (first, column) = (whole(first)?, args.get(1).map(whole).transpose()?);
        let is_pretty = args.get(2).and_then(|one| one.as_boolean_opt());
        let relations = known();
        let mut out = StringViewBuilder::with_capacity(rows);
        for (at, oid) in first.as_primitive::<Int32Type>().iter().enumerate() {
            let column = column.as_ref().map(|all| all.as_primitive::<Int32Type>());
            let column = column.filter(|all| all.is_valid(at)).map_or(0, |all| all.value(at));
            let is_pretty = is_pretty.is_some_and(|all| all.is_valid(at) && all.value(at));
            let found =
                oid.and_then(|oid| keys::index_definition(&relations, oid, column, is_pretty));
            out.append_option(found);
        }
        Ok(Arc::new(out.finish()))
    });
    let known = relations.clone();
    let constraint = function("pg_get_constraintdef", DataType::Utf8View, move |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("pg_get_constraintdef")) };
        let (first, relations) = (whole(first)?, known());
        let mut out = StringViewBuilder::with_capacity(rows);
        for oid in first.as_primitive::<Int32Type>() {
            out.append_option(oid.and_then(|oid| keys::constraint_definition(&relations, oid)));
        }
        Ok(Arc::new(out.finish()))
    });
    let known = relations.clone();
    let sequence = function("pg_get_serial_sequence", DataType::Utf8View, move |args, rows| {
        let [table, column] = args else { return Err(no_arguments("pg_get_serial_sequence")) };
        let (table, column, relations) = (strings(table)?, strings(column)?, known());
        let mut out = StringViewBuilder::with_capacity(rows);
        for (table, column) in
            as_string_view_array(&table)?.iter().zip(as_string_view_array(&column)?)
        {
            let table = table.unwrap_or_default();
            let plain = table.rsplit('.').next().unwrap_or(table).trim().trim_matches('"');
            out.append_option(
                column.and_then(|column| keys::sequence_of(&relations, plain, column)),
            );
        }
        Ok(Arc::new(out.finish()))
    });
    vec![index, constraint, sequence, changes_of(relations.clone()), view_definition(relations)]
}

/// `pg_relation_is_updatable`: bits of UPDATE, INSERT and DELETE for a table, none for a view.
fn changes_of(relations: Arc<impl Fn() -> Vec<Relation> + Send + Sync + 'static>) -> ScalarUDF {
    const UPDATE_INSERT_DELETE: i32 = 4 | 8 | 16;
    function("pg_relation_is_updatable", DataType::Int32, move |args, rows| {
        let Some(first) = args.first() else {
            return Err(no_arguments("pg_relation_is_updatable"));
        };
        let (numbers, relations) = (whole(first)?, relations());
        let mut out = Int32Builder::with_capacity(rows);
        for oid in numbers.as_primitive::<Int32Type>() {
            let is_table = |one: &&Relation| Some(one.oid) == oid && one.view.is_none();
            let bits = relations.iter().find(is_table).map_or(0, |_| UPDATE_INSERT_DELETE);
            out.append_option(oid.map(|_| bits));
        }
        Ok(Arc::new(out.finish()))
    })
}

/// `pg_get_viewdef` of a view's number, or of its name.
fn view_definition(
    relations: Arc<impl Fn() -> Vec<Relation> + Send + Sync + 'static>,
) -> ScalarUDF {
    function("pg_get_viewdef", DataType::Utf8View, move |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("pg_get_viewdef")) };
        let (first, relations) = (strings(first)?, relations());
        let mut out = StringViewBuilder::with_capacity(rows);
        for one in as_string_view_array(&first)? {
            let is_it = |known: &&Relation| {
                one.is_some_and(|one| {
                    one.rsplit('.').next().unwrap_or(one).trim().trim_matches('"') == known.name
                        || one.parse() == Ok(known.oid)
                })
            };
            out.append_option(relations.iter().find(is_it).and_then(Relation::query));
        }
        Ok(Arc::new(out.finish()))
    })
}

/// Numbers of whatever width; what is no number is null.
fn whole(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(datafusion::arrow::compute::cast(array, &DataType::Int32)?)
}

/// The name of an interval type with fields, digits or both
/// (<https://www.postgresql.org/docs/15/datatype-datetime.html>).
fn interval_with(modifier: i32) -> String {
    let (fields, digits) = (modifier >> 16, modifier & 0xffff);
    let known = INTERVAL_FIELDS.iter().find(|(_, mask)| *mask == fields);
    let fields = known.map_or_else(String::new, |(words, _)| format!(" {words}"));
    match digits {
        0xffff => format!("interval{fields}"),
        digits => format!("interval{fields}({digits})"),
    }
}

/// A type's name with what belongs to it: `character varying(20)`, `numeric(10,2)`.
fn named_with(oid: i32, modifier: i32) -> String {
    let name = type_name(oid).unwrap_or_else(|| "???".into());
    let with_digits = |name: &str, digits: i32| match name.split_once(' ') {
        Some((first, rest)) => format!("{first}({digits}) {rest}"),
        None => format!("{name}({digits})"),
    };
    match (oid, modifier.checked_sub(4).filter(|rest| 0 <= *rest)) {
        (1083 | 1114 | 1184, _) if 0 <= modifier => with_digits(&name, modifier),
        (1186, Some(_)) => interval_with(modifier),
        (1042 | 1043, Some(length)) => format!("{name}({length})"),
        (1700, Some(digits)) => format!("{name}({},{})", digits >> 16, digits & 0xffff),
        _ => name,
    }
}

fn about_types() -> Vec<ScalarUDF> {
    let format_type = function("format_type", DataType::Utf8View, |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("format_type")) };
        let numbers = datafusion::arrow::compute::cast(first, &DataType::Int32)?;
        let modifiers =
            args.get(1).map(|one| datafusion::arrow::compute::cast(one, &DataType::Int32));
        let modifiers = modifiers.transpose()?;
        let mut out = StringViewBuilder::with_capacity(rows);
        for (at, one) in numbers.as_primitive::<Int32Type>().iter().enumerate() {
            let modifier = modifiers.as_ref().map(|all| all.as_primitive::<Int32Type>());
            let modifier = modifier.filter(|all| all.is_valid(at)).map_or(-1, |all| all.value(at));
            out.append_option(one.map(|oid| named_with(oid, modifier)));
        }
        Ok(Arc::new(out.finish()))
    });
    let typeof_ = function("pg_typeof", DataType::Utf8View, |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("pg_typeof")) };
        text(&type_name(of_arrow(first.data_type())).unwrap_or_default()).to_array_of_size(rows)
    });
    let regtype = by_text(REGTYPE, |name| {
        let oid = name.parse().ok().or_else(|| oid_of(name));
        let none = (oid == Some(0)).then(|| "-".to_string());
        Ok(oid.and_then(type_name).or(none).or_else(|| Some(name.to_string())))
    });
    let to_regtype = function("to_regtype", DataType::Int32, |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("to_regtype")) };
        let first = strings(first)?;
        let mut out = Int32Builder::with_capacity(rows);
        for one in as_string_view_array(&first)? {
            out.append_option(one.and_then(oid_of));
        }
        Ok(Arc::new(out.finish()))
    });
    vec![format_type, typeof_, regtype, to_regtype, to_regnamespace(), names_of_types()]
}

/// `oidvectortypes`: the names of the types whose numbers a list has.
fn names_of_types() -> ScalarUDF {
    function("oidvectortypes", DataType::Utf8View, |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("oidvectortypes")) };
        let lists = first.as_list_opt::<i32>();
        let mut out = StringViewBuilder::with_capacity(rows);
        for row in 0..first.len() {
            let names = lists.filter(|lists| lists.is_valid(row)).map(|lists| {
                let numbers = whole(&lists.value(row))?;
                let numbers = numbers.as_primitive::<Int32Type>().iter().flatten();
                let names = numbers.map(|oid| type_name(oid).unwrap_or_else(|| "???".into()));
                Ok::<_, DataFusionError>(names.collect::<Vec<_>>().join(", "))
            });
            out.append_option(names.transpose()?);
        }
        Ok(Arc::new(out.finish()))
    })
}

/// The number of a schema by its name, the name by the number.
fn to_regnamespace() -> ScalarUDF {
    let returns = |types: &[DataType]| match types.first() {
        Some(first) if first.is_integer() => DataType::Utf8View,
        _ => DataType::Int32,
    };
    function::function(REGNAMESPACE, anything(), returns, |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments(REGNAMESPACE)) };
        if first.data_type().is_integer() {
            let numbers = whole(first)?;
            let name = |oid: i32| schema_name(oid).map_or_else(|| oid.to_string(), str::to_string);
            let names = numbers.as_primitive::<Int32Type>().iter().map(|oid| oid.map(name));
            return Ok(Arc::new(names.collect::<StringViewArray>()));
        }
        let texts = strings(first)?;
        let mut out = Int32Builder::with_capacity(rows);
        for name in as_string_view_array(&texts)? {
            let Some(name) = name else {
                out.append_null();
                continue;
            };
            let oid = schema_oid(name.trim_matches('"')).ok_or_else(|| {
                let message = format!("schema \"{name}\" does not exist");
                DataFusionError::External(Box::new(SqlError::new("3F000", message)))
            })?;
            out.append_value(oid);
        }
        Ok(Arc::new(out.finish()))
    })
}

fn about_session(facts: &Arc<dyn Facts>) -> Vec<ScalarUDF> {
    let user = text(&facts.user());
    let database = match facts.database() {
        name if name.is_empty() => text(DATABASE),
        name => text(&name),
    };
    let mut all = vec![
        constant("version", text(&facts.version())),
        constant("current_database", database.clone()),
        constant("current_catalog", database),
    ];
    for name in ["current_user", "session_user", "user", "current_role"] {
        all.push(constant(name, user.clone()));
    }
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)));
    all.push(function("current_schemas", list, |args, rows| {
        let with_implicit = args.first().and_then(|one| one.as_boolean_opt());
        let mut out = ListBuilder::new(StringViewBuilder::new());
        for row in 0..rows {
            match with_implicit.is_none_or(|all| all.is_null(row) || all.value(row)) {
                true => out.append_value([Some("pg_catalog"), Some("public")]),
                false => out.append_value([Some("public")]),
            }
        }
        Ok(Arc::new(out.finish()))
    }));
    let known = facts.clone();
    all.push(function("current_setting", DataType::Utf8View, move |args, rows| {
        let Some(first) = args.first() else { return Err(no_arguments("current_setting")) };
        // A second argument says that an unknown one is null.
        let is_optional = 1 < args.len();
        let first = strings(first)?;
        let mut out = StringViewBuilder::with_capacity(rows);
        for one in as_string_view_array(&first)?.iter().flatten() {
            match known.setting(&one.to_ascii_lowercase()) {
                Some(value) => out.append_value(value),
                None if is_optional => out.append_null(),
                None => {
                    let message = format!("unrecognized configuration parameter \"{one}\"");
                    let error = SqlError::new("42704", message);
                    return Err(DataFusionError::External(Box::new(error)));
                }
            }
        }
        Ok(Arc::new(out.finish()))
    }));
    all.push(set_config(facts.clone()));
    all.push(pg_notify(facts.clone()));
    for name in ["pg_postmaster_start_time", "pg_conf_load_time"] {
        let started =
            ScalarValue::TimestampMicrosecond(Some(facts.started_at_us()), Some(ZONE.into()));
        all.push(constant(name, started));
    }
    all.push(transaction_number("txid_current"));
    all.push(transaction_number("pg_current_xact_id"));
    let known = facts.clone();
    all.push(function("pg_backend_pid", DataType::Int32, move |_, rows| {
        ScalarValue::Int32(Some(known.pid())).to_array_of_size(rows)
    }));
    all
}

/// A number that no call returned before: transactions have none of their own.
fn transaction_number(name: &'static str) -> ScalarUDF {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    function(name, DataType::Int64, |_, rows| {
        ScalarValue::Int64(Some(NEXT.fetch_add(1, Relaxed))).to_array_of_size(rows)
    })
}

fn pg_notify(facts: Arc<dyn Facts>) -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::Utf8View; 2], Volatility::Volatile);
    function::function(
        "pg_notify",
        signature,
        |_| DataType::Utf8View,
        move |args, rows| {
            let [channel, payload] = args else { return Err(no_arguments("pg_notify")) };
            for (channel, payload) in
                as_string_view_array(channel)?.iter().zip(as_string_view_array(payload)?)
            {
                let sent = facts.notify(channel.unwrap_or_default(), payload.unwrap_or_default());
                sent.map_err(|error| DataFusionError::External(Box::new(error)))?;
            }
            text("").to_array_of_size(rows)
        },
    )
}

fn set_config(facts: Arc<dyn Facts>) -> ScalarUDF {
    function("set_config", DataType::Utf8View, move |args, rows| {
        let [name, value, is_local] = args else { return Err(no_arguments("set_config")) };
        let (name, value) = (strings(name)?, strings(value)?);
        let is_local = is_local.as_boolean_opt().is_some_and(|one| !one.is_empty() && one.value(0));
        let mut out = StringViewBuilder::with_capacity(rows);
        for (name, value) in as_string_view_array(&name)?.iter().zip(as_string_view_array(&value)?)
        {
            let (name, value) = (name.unwrap_or_default(), value.unwrap_or_default());
            let set = facts.set(name, value, is_local);
            set.map_err(|error| DataFusionError::External(Box::new(error)))?;
            out.append_value(value);
        }
        Ok(Arc::new(out.finish()))
    })
}

/// Gives all sessions the functions that say the same to everybody.
pub fn register(context: &SessionContext) {
    let quoting = vec![
        by_text("quote_ident", |name| Ok(Some(quoted_ident(name)))),
        by_text("quote_literal", |text| Ok(Some(quoted_literal(text)))),
        by_text("pg_size_pretty", |size| Ok(size_pretty(size))),
        // Expressions are kept as they are shown.
        by_text("pg_get_expr", |kept| Ok(Some(kept.to_string()))),
    ];
    let all = constants().into_iter().chain(quoting).chain(about_types());
    all.for_each(|one| context.register_udf(one));
}

/// Gives a session those that tell of it.
pub fn register_own(context: &SessionContext, facts: &Arc<dyn Facts>) {
    about_session(facts).into_iter().for_each(|one| context.register_udf(one));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_need_it() {
        assert_eq!(quoted_ident("a_1"), "a_1");
        assert_eq!(quoted_ident("A\"b"), "\"A\"\"b\"");
        assert_eq!(quoted_ident("1a"), "\"1a\"");
        assert_eq!(quoted_ident("select"), "\"select\"");
        assert_eq!(quoted_ident("between"), "\"between\"");
        assert_eq!(quoted_ident("view"), "view");
        assert_eq!(size_pretty("10239").as_deref(), Some("10239 bytes"));
        assert_eq!(size_pretty("10240").as_deref(), Some("10 kB"));
    }
}
