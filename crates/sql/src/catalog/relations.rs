//! Tables, their columns and schemas, as PostgreSQL's and the standard's tables tell of them.

use super::cells::{Cell, Table, number, text, yes};
use super::types::{of_arrow, type_name};
use crate::jsonb_functions::{JSONB, TYPE_KEY};
use datafusion::arrow::datatypes::{Field, SchemaRef};

/// Numbers of what is here and not PostgreSQL's begin with it.
const FIRST_OID: i32 = 16_384;
/// The numbers of schemas.
const SCHEMAS: &[(i32, &str)] =
    &[(11, "pg_catalog"), (2200, "public"), (13_000, "information_schema")];
/// The number of the database.
const DATABASE_OID: i32 = 5;
/// The number of the one role.
const ROLE_OID: i32 = 10;
/// The name of the one role.
pub const ROLE: &str = "quipu";
/// The database, however a client calls it when it comes.
pub const DATABASE: &str = "quipu";

/// A table in the schema `public`.
#[derive(Clone, Debug)]
pub struct Relation {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub schema: SchemaRef,
}

/// The number of a relation at a place in their list.
pub fn relation_oid(at: usize) -> i32 {
    FIRST_OID.saturating_add(i32::try_from(at).unwrap_or(i32::MAX))
}

fn type_oid(field: &Field) -> i32 {
    match field.metadata().get(TYPE_KEY).is_some_and(|name| name == JSONB) {
        true => 3802,
        false => of_arrow(field.data_type()),
    }
}

/// PostgreSQL's own.
pub fn tables(relations: &[Relation]) -> Vec<Table> {
    vec![
        classes(relations),
        attributes(relations),
        namespaces(),
        database(),
        roles("pg_roles"),
        roles("pg_authid"),
        Table {
            name: "pg_user",
            columns: "usename:n usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b \
                      passwd:t valuntil:t useconfig:a",
            rows: vec![vec![
                text(ROLE),
                number(ROLE_OID),
                yes(true),
                yes(true),
                yes(true),
                yes(true),
            ]],
        },
        Table {
            name: "pg_am",
            columns: "oid:o amname:n amhandler:t amtype:c",
            rows: vec![vec![number(2), text("heap"), text("heap_tableam_handler"), text("t")]],
        },
        Table {
            name: "pg_tablespace",
            columns: "oid:o spcname:n spcowner:o spcacl:a spcoptions:a",
            rows: vec![vec![number(1663), text("pg_default"), number(ROLE_OID)]],
        },
        extensions(),
        Table {
            name: "pg_tables",
            columns: "schemaname:n tablename:n tableowner:n tablespace:n hasindexes:b hasrules:b \
                      hastriggers:b rowsecurity:b",
            rows: relations
                .iter()
                .map(|one| {
                    let no = yes(false);
                    vec![
                        text("public"),
                        text(&one.name),
                        text(ROLE),
                        Cell::Null,
                        no.clone(),
                        no.clone(),
                        no.clone(),
                        no,
                    ]
                })
                .collect(),
        },
    ]
}

fn namespaces() -> Table {
    let row =
        |(oid, name): &(i32, &str)| vec![number(*oid), text(name), number(ROLE_OID), Cell::Null];
    let columns = "oid:o nspname:n nspowner:o nspacl:a";
    Table { name: "pg_namespace", columns, rows: SCHEMAS.iter().map(row).collect() }
}

fn extensions() -> Table {
    let row = |(name, oid): (&&str, i32)| {
        let owner = number(ROLE_OID);
        vec![number(oid), text(name), owner, number(2200), yes(true), text("1.0")]
    };
    let all = ["plpgsql", "pg_prometheus"].iter().zip(FIRST_OID + 1000..);
    let columns = "oid:o extname:n extowner:o extnamespace:o extrelocatable:b extversion:t";
    Table { name: "pg_extension", columns, rows: all.map(row).collect() }
}

fn classes(relations: &[Relation]) -> Table {
    let row = |(at, one): (usize, &Relation)| {
        let columns = i32::try_from(one.schema.fields().len()).unwrap_or(i32::MAX);
        vec![
            number(relation_oid(at)),
            text(&one.name),
            number(2200),
            number(0),
            number(0),
            number(ROLE_OID),
            number(2),
            number(0),
            number(0),
            number(0),
            Cell::Float(-1.0),
            number(0),
            number(0),
            yes(false),
            yes(false),
            text("p"),
            text("r"),
            number(columns),
            number(0),
            yes(false),
            yes(false),
            yes(false),
            yes(false),
            yes(false),
            yes(true),
            text("d"),
            yes(false),
            number(0),
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]
    };
    let columns = "oid:o relname:n relnamespace:o reltype:o reloftype:o relowner:o relam:o \
                   relfilenode:o reltablespace:o relpages:i reltuples:f relallvisible:i \
                   reltoastrelid:o relhasindex:b relisshared:b relpersistence:c relkind:c \
                   relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b \
                   relrowsecurity:b relforcerowsecurity:b relispopulated:b relreplident:c \
                   relispartition:b relrewrite:o relacl:a reloptions:a relpartbound:t";
    Table { name: "pg_class", columns, rows: relations.iter().enumerate().map(row).collect() }
}

fn attributes(relations: &[Relation]) -> Table {
    let mut rows = Vec::new();
    for (at, relation) in relations.iter().enumerate() {
        for (field, nth) in relation.schema.fields().iter().zip(1..) {
            let oid = type_oid(field);
            rows.push(vec![
                number(relation_oid(at)),
                text(field.name()),
                number(oid),
                number(-1),
                number(-1),
                number(nth),
                number(0),
                number(-1),
                yes(false),
                text("x"),
                text(""),
                text("i"),
                yes(!field.is_nullable()),
                yes(false),
                yes(false),
                text(""),
                text(""),
                yes(false),
                yes(true),
                number(0),
                number(if oid == 25 { 100 } else { 0 }),
                Cell::Null,
                Cell::Null,
            ]);
        }
    }
    let columns = "attrelid:o attname:n atttypid:o attstattarget:i attlen:s attnum:s attndims:i \
                   atttypmod:i attbyval:b attstorage:c attcompression:c attalign:c attnotnull:b atthasdef:b \
                   atthasmissing:b attidentity:c attgenerated:c attisdropped:b attislocal:b \
                   attinhcount:i attcollation:o attacl:a attoptions:a";
    Table { name: "pg_attribute", columns, rows }
}

fn database() -> Table {
    let row = vec![
        number(DATABASE_OID),
        text(DATABASE),
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
    ];
    let columns = "oid:o datname:n datdba:o encoding:i datlocprovider:c datistemplate:b \
                   datallowconn:b datconnlimit:i dattablespace:o datcollate:t datctype:t \
                   daticulocale:t datcollversion:t datacl:a";
    Table { name: "pg_database", columns, rows: vec![row] }
}

fn roles(name: &'static str) -> Table {
    let row = vec![
        number(ROLE_OID),
        text(ROLE),
        yes(true),
        yes(true),
        yes(true),
        yes(true),
        yes(true),
        yes(true),
        yes(true),
        number(-1),
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ];
    let columns = "oid:o rolname:n rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b \
                   rolcanlogin:b rolreplication:b rolbypassrls:b rolconnlimit:i rolpassword:t \
                   rolvaliduntil:t rolconfig:a";
    Table { name, columns, rows: vec![row] }
}

/// The standard's.
pub fn standard_tables(relations: &[Relation]) -> Vec<Table> {
    let table = |one: &Relation| {
        vec![
            text(DATABASE),
            text("public"),
            text(&one.name),
            text("BASE TABLE"),
            text("NO"),
            text("NO"),
        ]
    };
    vec![
        Table {
            name: "tables",
            columns: "table_catalog:n table_schema:n table_name:n table_type:t \
                      is_insertable_into:t is_typed:t",
            rows: relations.iter().map(table).collect(),
        },
        standard_columns(relations),
        Table {
            name: "schemata",
            columns: "catalog_name:n schema_name:n schema_owner:n",
            rows: SCHEMAS
                .iter()
                .map(|(_, name)| vec![text(DATABASE), text(name), text(ROLE)])
                .collect(),
        },
        Table {
            name: "views",
            columns: "table_catalog:n table_schema:n table_name:n view_definition:t",
            rows: Vec::new(),
        },
        Table {
            name: "key_column_usage",
            columns: "constraint_name:n table_schema:n table_name:n column_name:n \
                      ordinal_position:i",
            rows: Vec::new(),
        },
        Table {
            name: "table_constraints",
            columns: "constraint_name:n table_schema:n table_name:n constraint_type:t",
            rows: Vec::new(),
        },
        Table {
            name: "routines",
            columns: "routine_catalog:n routine_schema:n routine_name:n routine_type:t",
            rows: Vec::new(),
        },
    ]
}

fn standard_columns(relations: &[Relation]) -> Table {
    let mut rows = Vec::new();
    for relation in relations {
        for (field, nth) in relation.schema.fields().iter().zip(1..) {
            let oid = type_oid(field);
            let within = super::types::name_within(oid).unwrap_or("text");
            rows.push(vec![
                text(DATABASE),
                text("public"),
                text(&relation.name),
                text(field.name()),
                number(nth),
                Cell::Null,
                text(if field.is_nullable() { "YES" } else { "NO" }),
                text(&type_name(oid).unwrap_or_default()),
                Cell::Null,
                Cell::Null,
                Cell::Null,
                text(DATABASE),
                text("pg_catalog"),
                text(within),
                text("NO"),
                text("NEVER"),
                text("NO"),
            ]);
        }
    }
    let columns = "table_catalog:n table_schema:n table_name:n column_name:n ordinal_position:i \
                   column_default:t is_nullable:t data_type:t character_maximum_length:i \
                   numeric_precision:i datetime_precision:i udt_catalog:n udt_schema:n \
                   udt_name:n is_identity:t is_generated:t is_updatable:t";
    Table { name: "columns", columns, rows }
}
