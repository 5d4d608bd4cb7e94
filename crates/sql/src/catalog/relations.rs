//! Tables, their columns and schemas, as PostgreSQL's and the standard's tables tell of them.

use crate::catalog::cells::{Cell, Table as Cells, number, text, yes};
use crate::catalog::keys::Key;
use crate::catalog::names::{DATABASE, INFORMATION, PUBLIC_OID, ROLE, ROLE_OID};
use crate::catalog::shown_defaults::shown_default;
use crate::catalog::{keys, statistics};
use crate::tables::heap::column_defaults::{identity_of, is_serial};
use crate::tables::heap::columns::type_oid_and_modifier;
use crate::tables::heap::index_properties::is_index;
use crate::tables::heap::stored_views::{Kind, View};
use crate::types::postgres_types as types;
use crate::types::postgres_types::{of_arrow, type_name};
use crate::types::special_fields::{BPCHAR, JSON, JSONB, TYPE_KEY, UUID, VARCHAR};
use datafusion::arrow::datatypes::{Field, SchemaRef};
use std::sync::Arc;
use tables::{Column, Constraint, ConstraintKind, Table};

/// Numbers of what is here and not PostgreSQL's begin with it.
const FIRST_OID: i32 = 16_384;
/// Those of ordinary tables.
const FIRST_ORDINARY_OID: i32 = 100_000;
/// The bit by which the number of a table's row type differs from the table's.
const ROW_TYPE: i32 = 1 << 29;
/// The numbers of schemas.
const SCHEMAS: &[(i32, &str)] = &[
    (11, "pg_catalog"),
    (PUBLIC_OID, "public"),
    (13_000, "information_schema"),
    (13_001, INFORMATION),
];
/// The number of a schema.
pub fn schema_oid(name: &str) -> Option<i32> {
    SCHEMAS.iter().find(|(_, known)| *known == name).map(|(oid, _)| *oid)
}

/// The name of a schema.
pub fn schema_name(oid: i32) -> Option<&'static str> {
    SCHEMAS.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name)
}

/// The access method of tables, `heap`.
const HEAP_OID: i32 = 2;

/// A table in the schema `public`.
#[derive(Clone, Debug)]
pub struct Relation {
    /// Its number.
    pub oid: i32,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub(crate) columns: Vec<Told>,
    /// Its query and what it is called, if it is a view.
    pub(crate) view: Option<View>,
    /// Its constraints and unique indexes, in the order in which they were made.
    pub(crate) keys: Vec<Key>,
}

/// What is told of a column.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) name: String,
    /// The number of its type.
    pub(crate) oid: i32,
    /// What belongs to the type, such as the length of a text; -1 for nothing.
    modifier: i32,
    is_nullable: bool,
    /// Its default as PostgreSQL shows it.
    pub(crate) default: Option<String>,
    /// `a` or `d` for a column that is an identity.
    pub(crate) identity: &'static str,
    pub(crate) is_serial: bool,
}

impl Relation {
    /// One that is there without anybody making it, at a place in their list.
    pub fn written(at: usize, name: &str, schema: SchemaRef) -> Relation {
        let told = |field: &Arc<Field>| Told {
            name: field.name().clone(),
            oid: type_oid(field),
            modifier: -1,
            is_nullable: field.is_nullable(),
            default: None,
            identity: "",
            is_serial: false,
        };
        Relation {
            oid: FIRST_OID.saturating_add(i32::try_from(at).unwrap_or(i32::MAX)),
            name: name.to_string(),
            columns: schema.fields().iter().map(told).collect(),
            view: None,
            keys: Vec::new(),
        }
    }

    /// One that somebody has made.
    pub fn ordinary(table: &Arc<Table>) -> Relation {
        let schema = table.schema();
        let told = |column: &Column| {
            let (oid, modifier) = type_oid_and_modifier(column);
            let is_serial = is_serial(schema, &column.name);
            Told {
                name: column.name.clone(),
                oid,
                modifier,
                is_nullable: column.is_nullable,
                default: match is_serial {
                    true => Some(keys::serial_default(table.name(), &column.name)),
                    false => shown_default(column),
                },
                identity: identity_of(schema, &column.name),
                is_serial,
            }
        };
        let key = |one: &Constraint| Key {
            name: one.name.clone(),
            is_primary: one.kind == ConstraintKind::PrimaryKey,
            is_index: is_index(schema, &one.name),
            columns: one.columns.iter().map(|at| schema.columns[*at].name.clone()).collect(),
            places: one.columns.iter().map(|at| i32::try_from(at + 1).unwrap_or(0)).collect(),
        };
        let number = i32::try_from(table.id()).unwrap_or(i32::MAX);
        Relation {
            oid: FIRST_ORDINARY_OID.saturating_add(number),
            name: table.name().to_string(),
            columns: schema.columns.iter().map(told).collect(),
            view: View::of(schema),
            keys: schema.constraints.iter().map(key).collect(),
        }
    }
}

impl Relation {
    /// The query that it is, where it is a view.
    pub(crate) fn query(&self) -> Option<String> {
        self.view.as_ref().map(|view| format!(" {};", view.query))
    }

    /// What `pg_class` calls it.
    fn letter(&self) -> &'static str {
        match self.view.as_ref().map(|view| view.kind) {
            None => "r",
            Some(Kind::Plain) => "v",
            Some(Kind::Materialized | Kind::Continuous) => "m",
        }
    }
}

/// Views of a kind as PostgreSQL lists them.
fn own_views(relations: &[Relation], is_materialized: bool) -> Cells {
    let is_one = |one: &&Relation| one.letter() == if is_materialized { "m" } else { "v" };
    let row = |one: &Relation| {
        let mut row = vec![text("public"), text(&one.name), text(ROLE)];
        if is_materialized {
            row.extend([Cell::Null, yes(false), yes(true)]);
        }
        row.push(one.query().map_or(Cell::Null, Cell::Text));
        row
    };
    let rows = relations.iter().filter(is_one).map(row).collect();
    match is_materialized {
        true => {
            let columns = "schemaname:n matviewname:n matviewowner:n tablespace:n hasindexes:b \
                           ispopulated:b definition:t";
            Cells { name: "pg_matviews", columns, rows }
        }
        false => {
            let columns = "schemaname:n viewname:n viewowner:n definition:t";
            Cells { name: "pg_views", columns, rows }
        }
    }
}

fn standard_views(relations: &[Relation]) -> Cells {
    let row = |one: &Relation| {
        let no = || text("NO");
        let query = one.query().map_or(Cell::Null, Cell::Text);
        vec![text(DATABASE), text("public"), text(&one.name), query, text("NONE"), no(), no()]
    };
    let columns = "table_catalog:n table_schema:n table_name:n view_definition:t check_option:t \
                   is_updatable:t is_insertable_into:t";
    let rows = relations.iter().filter(|one| one.letter() == "v").map(row).collect();
    Cells { name: "views", columns, rows }
}

fn type_oid(field: &Field) -> i32 {
    match field.metadata().get(TYPE_KEY).map(String::as_str) {
        Some(JSONB) => 3802,
        Some(JSON) => 114,
        Some(UUID) => 2950,
        Some(VARCHAR) => 1043,
        Some(BPCHAR) => 1042,
        _ => of_arrow(field.data_type()),
    }
}

/// A table of that name, if it is one of those that tell of tables.
pub fn told(name: &str, relations: &[Relation]) -> Option<Cells> {
    Some(match name {
        "pg_class" => classes(relations),
        "pg_attribute" => attributes(relations),
        "pg_tables" => own_tables(relations),
        "pg_views" => own_views(relations, false),
        "pg_matviews" => own_views(relations, true),
        "views" => standard_views(relations),
        "tables" => standard_relations(relations),
        "columns" => standard_columns(relations),
        "table_constraints" => table_constraints(relations),
        "key_column_usage" => key_columns(relations),
        "constraint_column_usage" => keys::used_columns(relations),
        "schemata" => schemata(),
        other => {
            return statistics::table(other, relations).or_else(|| keys::told(other, relations));
        }
    })
}

/// PostgreSQL's own.
pub fn tables(relations: &[Relation]) -> Vec<Cells> {
    vec![
        classes(relations),
        attributes(relations),
        namespaces(),
        extensions(),
        own_tables(relations),
        own_views(relations, false),
        own_views(relations, true),
    ]
    .into_iter()
    .chain(keys::tables(relations))
    .chain(statistics::tables(relations))
    .collect()
}

fn own_tables(relations: &[Relation]) -> Cells {
    let row = |one: &Relation| {
        let (no, has_keys) = (yes(false), yes(!one.keys.is_empty()));
        let (schema, owner) = (text("public"), text(ROLE));
        vec![schema, text(&one.name), owner, Cell::Null, has_keys, no.clone(), no.clone(), no]
    };
    let columns = "schemaname:n tablename:n tableowner:n tablespace:n hasindexes:b hasrules:b \
                   hastriggers:b rowsecurity:b";
    let rows = relations.iter().filter(|one| one.view.is_none()).map(row).collect();
    Cells { name: "pg_tables", columns, rows }
}

fn namespaces() -> Cells {
    let row =
        |(oid, name): &(i32, &str)| vec![number(*oid), text(name), number(ROLE_OID), Cell::Null];
    let columns = "oid:o nspname:n nspowner:o nspacl:a";
    Cells { name: "pg_namespace", columns, rows: SCHEMAS.iter().map(row).collect() }
}

fn extensions() -> Cells {
    let row = |(name, oid): (&&str, i32)| {
        let owner = number(ROLE_OID);
        vec![number(oid), text(name), owner, number(2200), yes(true), text("1.0")]
    };
    let all = ["plpgsql", "pg_prometheus"].iter().zip(FIRST_OID + 1000..);
    let columns = "oid:o extname:n extowner:o extnamespace:o extrelocatable:b extversion:t \
                   extconfig:w extcondition:a";
    Cells { name: "pg_extension", columns, rows: all.map(row).collect() }
}

/// A row of `pg_class`.
pub(crate) fn class(
    oid: i32,
    name: &str,
    kind: &str,
    method: i32,
    columns: usize,
    has_indexes: bool,
) -> Vec<Cell> {
    vec![
        number(oid),
        text(name),
        number(PUBLIC_OID),
        number(if kind == "i" { 0 } else { oid | ROW_TYPE }),
        number(0),
        number(ROLE_OID),
        number(method),
        number(0),
        number(0),
        number(0),
        // Of an index PostgreSQL says how many there are, which nobody counts here.
        Cell::Float(if kind == "i" { 0.0 } else { -1.0 }),
        number(0),
        number(0),
        yes(has_indexes),
        yes(false),
        text("p"),
        text(kind),
        number(i32::try_from(columns).unwrap_or(i32::MAX)),
        number(0),
        yes(false),
        yes(false),
        yes(false),
        yes(false),
        yes(false),
        yes(true),
        text(if kind == "i" { "n" } else { "d" }),
        yes(false),
        number(0),
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]
}

fn classes(relations: &[Relation]) -> Cells {
    let row = |one: &Relation| {
        let method = if one.letter() == "v" { 0 } else { HEAP_OID };
        class(one.oid, &one.name, one.letter(), method, one.columns.len(), !one.keys.is_empty())
    };
    let columns = "oid:o relname:n relnamespace:o reltype:o reloftype:o relowner:o relam:o \
                   relfilenode:o reltablespace:o relpages:i reltuples:f relallvisible:i \
                   reltoastrelid:o relhasindex:b relisshared:b relpersistence:c relkind:c \
                   relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b \
                   relrowsecurity:b relforcerowsecurity:b relispopulated:b relreplident:c \
                   relispartition:b relrewrite:o relacl:a reloptions:a relpartbound:t";
    let rows = relations.iter().map(row).chain(keys::index_classes(relations)).collect();
    Cells { name: "pg_class", columns, rows }
}

/// A row of `pg_attribute`: a column of a table, or of an index, which has no default.
fn attribute(of: i32, column: &Told, nth: i32, is_of_table: bool) -> Vec<Cell> {
    let oid = column.oid;
    let (size, storage) = types::stored(oid);
    vec![
        number(of),
        text(&column.name),
        number(oid),
        number(-1),
        number(size),
        number(nth),
        number(i32::from(types::is_array(oid))),
        number(column.modifier),
        yes(0 < size && size <= 8),
        text(storage),
        text(""),
        text("i"),
        yes(is_of_table && !column.is_nullable),
        yes(is_of_table && column.default.is_some()),
        yes(false),
        text(if is_of_table { column.identity } else { "" }),
        text(""),
        yes(false),
        yes(true),
        number(0),
        number(if types::is_collated(oid) { 100 } else { 0 }),
        Cell::Null,
        Cell::Null,
    ]
}

fn attributes(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        let all = relation.columns.iter().zip(1..);
        rows.extend(all.map(|(column, nth)| attribute(relation.oid, column, nth, true)));
    }
    for relation in relations {
        for (oid, key) in relation.indexes() {
            for (place, nth) in key.places.iter().zip(1..) {
                let at = usize::try_from(*place).unwrap_or(0).wrapping_sub(1);
                let column = relation.columns.get(at);
                rows.extend(column.map(|column| attribute(oid, column, nth, false)));
            }
        }
    }
    let columns = "attrelid:o attname:n atttypid:o attstattarget:i attlen:s attnum:s attndims:i \
                   atttypmod:i attbyval:b attstorage:c attcompression:c attalign:c attnotnull:b atthasdef:b \
                   atthasmissing:b attidentity:c attgenerated:c attisdropped:b attislocal:b \
                   attinhcount:i attcollation:o attacl:a attoptions:a";
    Cells { name: "pg_attribute", columns, rows }
}

fn schemata() -> Cells {
    let row = |&(_, name): &(i32, &str)| vec![text(DATABASE), text(name), text(ROLE)];
    let columns = "catalog_name:n schema_name:n schema_owner:n";
    Cells { name: "schemata", columns, rows: SCHEMAS.iter().map(row).collect() }
}

/// The standard's.
pub fn standard_tables(relations: &[Relation]) -> Vec<Cells> {
    vec![
        standard_relations(relations),
        standard_columns(relations),
        schemata(),
        standard_views(relations),
        key_columns(relations),
        table_constraints(relations),
        keys::used_columns(relations),
    ]
}

fn standard_relations(relations: &[Relation]) -> Cells {
    let row = |one: &Relation| {
        let kind = if one.letter() == "v" { "VIEW" } else { "BASE TABLE" };
        vec![text(DATABASE), text("public"), text(&one.name), text(kind), text("NO"), text("NO")]
    };
    let columns = "table_catalog:n table_schema:n table_name:n table_type:t is_insertable_into:t \
                   is_typed:t";
    // The standard does not know materialized views.
    let rows = relations.iter().filter(|one| one.letter() != "m").map(row).collect();
    Cells { name: "tables", columns, rows }
}

/// What the standard calls the type of that number.
fn standard_type(oid: i32) -> String {
    match type_name(oid) {
        Some(name) if name.ends_with("[]") => "ARRAY".to_string(),
        name => name.unwrap_or_default(),
    }
}

impl Told {
    fn characters(&self) -> Option<i32> {
        (matches!(self.oid, 1042 | 1043) && 4 <= self.modifier).then(|| self.modifier - 4)
    }

    fn precision(&self) -> Option<i32> {
        match self.oid {
            1700 if 4 <= self.modifier => Some((self.modifier - 4) >> 16),
            21 => Some(16),
            23 => Some(32),
            20 => Some(64),
            700 => Some(24),
            701 => Some(53),
            _ => None,
        }
    }

    /// The base in which [`Told::precision`] counts digits.
    fn radix(&self) -> Option<i32> {
        match self.oid {
            20 | 21 | 23 | 700 | 701 => Some(2),
            1700 => Some(10),
            _ => None,
        }
    }

    /// Digits behind the point.
    fn scale(&self) -> Option<i32> {
        match self.oid {
            20 | 21 | 23 => Some(0),
            1700 if 4 <= self.modifier => Some((self.modifier - 4) & 0x7ff),
            _ => None,
        }
    }

    /// Digits of a second.
    fn clock_precision(&self) -> Option<i32> {
        match self.oid {
            1082 => Some(0),
            1083 | 1114 | 1184 if 0 <= self.modifier => Some(self.modifier),
            1083 | 1114 | 1184 | 1186 => Some(6),
            _ => None,
        }
    }

    /// Bytes that a text may have.
    fn octets(&self) -> Option<i32> {
        /// Bytes of a character in UTF-8.
        const CHARACTER: i32 = 4;
        match self.oid {
            25 | 1043 if self.modifier < 4 => Some(1 << 30),
            1042 | 1043 => Some((self.modifier - 4).max(1).saturating_mul(CHARACTER)),
            _ => None,
        }
    }
}

fn table_constraints(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        for key in relation.keys.iter().filter(|one| !one.is_index) {
            let kind = if key.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
            let (catalog, schema, no) = (text(DATABASE), text("public"), text("NO"));
            rows.push(vec![
                catalog.clone(),
                schema.clone(),
                text(&key.name),
                catalog,
                schema,
                text(&relation.name),
                text(kind),
                no.clone(),
                no,
            ]);
        }
    }
    let columns = "constraint_catalog:n constraint_schema:n constraint_name:n table_catalog:n \
                   table_schema:n table_name:n constraint_type:t is_deferrable:t \
                   initially_deferred:t";
    Cells { name: "table_constraints", columns, rows }
}

fn key_columns(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        for key in relation.keys.iter().filter(|one| !one.is_index) {
            for (column, nth) in key.columns.iter().zip(1..) {
                let (catalog, schema) = (text(DATABASE), text("public"));
                rows.push(vec![
                    catalog.clone(),
                    schema.clone(),
                    text(&key.name),
                    catalog,
                    schema,
                    text(&relation.name),
                    text(column),
                    number(nth),
                    Cell::Null,
                ]);
            }
        }
    }
    let columns = "constraint_catalog:n constraint_schema:n constraint_name:n table_catalog:n \
                   table_schema:n table_name:n column_name:n ordinal_position:i \
                   position_in_unique_constraint:i";
    Cells { name: "key_column_usage", columns, rows }
}

fn standard_columns(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        for (column, nth) in relation.columns.iter().zip(1..) {
            rows.push(standard_column(relation, column, nth));
        }
    }
    let columns = "table_catalog:n table_schema:n table_name:n column_name:n ordinal_position:i \
                   column_default:t is_nullable:t data_type:t character_maximum_length:i \
                   character_octet_length:i numeric_precision:i numeric_precision_radix:i \
                   numeric_scale:i datetime_precision:i udt_catalog:n udt_schema:n udt_name:n \
                   dtd_identifier:n is_self_referencing:t is_identity:t identity_generation:t \
                   identity_start:t identity_increment:t identity_maximum:t identity_minimum:t \
                   identity_cycle:t is_generated:t is_updatable:t";
    Cells { name: "columns", columns, rows }
}

fn standard_column(relation: &Relation, column: &Told, nth: i32) -> Vec<Cell> {
    let oid = column.oid;
    let optional = |number: Option<i32>| number.map_or(Cell::Null, Cell::Number);
    let is_identity = !column.identity.is_empty();
    let identity = |value: &str| if is_identity { text(value) } else { Cell::Null };
    vec![
        text(DATABASE),
        text("public"),
        text(&relation.name),
        text(&column.name),
        number(nth),
        column.default.as_deref().map_or(Cell::Null, text),
        text(if column.is_nullable { "YES" } else { "NO" }),
        text(&standard_type(oid)),
        optional(column.characters()),
        optional(column.octets()),
        optional(column.precision()),
        optional(column.radix()),
        optional(column.scale()),
        optional(column.clock_precision()),
        text(DATABASE),
        text("pg_catalog"),
        text(&types::udt_name(oid)),
        text(&nth.to_string()),
        text("NO"),
        text(if is_identity { "YES" } else { "NO" }),
        identity(if column.identity == "a" { "ALWAYS" } else { "BY DEFAULT" }),
        identity("1"),
        identity("1"),
        identity(&keys::greatest_of(oid).to_string()),
        identity("1"),
        text("NO"),
        text("NEVER"),
        text(if relation.view.is_none() { "YES" } else { "NO" }),
    ]
}
