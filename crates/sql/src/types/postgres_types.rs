//! `pg_type`, and what types are called (<https://www.postgresql.org/docs/15/catalog-pg-type.html>).

use datafusion::arrow::datatypes::DataType;

/// A type.
struct Known {
    oid: i32,
    /// Its name within.
    name: &'static str,
    /// What statements call it.
    shown: &'static str,
    size: i16,
    /// The number of its arrays' type.
    array: i32,
}

const fn known(oid: i32, name: &'static str, shown: &'static str, size: i16, array: i32) -> Known {
    Known { oid, name, shown, size, array }
}

/// All that a column here may have, and those that clients look for.
const KNOWN: &[Known] = &[
    known(16, "bool", "boolean", 1, 1000),
    known(17, "bytea", "bytea", -1, 1001),
    known(18, "char", "\"char\"", 1, 1002),
    known(19, "name", "name", 64, 1003),
    known(20, "int8", "bigint", 8, 1016),
    known(21, "int2", "smallint", 2, 1005),
    known(22, "int2vector", "int2vector", -1, 1006),
    known(23, "int4", "integer", 4, 1007),
    known(25, "text", "text", -1, 1009),
    known(26, "oid", "oid", 4, 1028),
    known(30, "oidvector", "oidvector", -1, 1013),
    known(114, "json", "json", -1, 199),
    known(700, "float4", "real", 4, 1021),
    known(701, "float8", "double precision", 8, 1022),
    known(705, "unknown", "unknown", -2, 0),
    known(1042, "bpchar", "character", -1, 1014),
    known(1043, "varchar", "character varying", -1, 1015),
    known(1082, "date", "date", 4, 1182),
    known(1083, "time", "time without time zone", 8, 1183),
    known(1114, "timestamp", "timestamp without time zone", 8, 1115),
    known(1184, "timestamptz", "timestamp with time zone", 8, 1185),
    known(1186, "interval", "interval", 16, 1187),
    known(1700, "numeric", "numeric", -1, 1231),
    known(2205, "regclass", "regclass", 4, 2210),
    known(2950, "uuid", "uuid", 16, 2951),
    known(3802, "jsonb", "jsonb", -1, 3807),
];

/// What statements call the type of that number.
pub fn type_name(oid: i32) -> Option<String> {
    KNOWN.iter().find_map(|one| match oid {
        _ if one.oid == oid => Some(one.shown.to_string()),
        _ if one.array == oid && oid != 0 => Some(format!("{}[]", one.shown)),
        _ => None,
    })
}

/// Whether texts of that type are in an order of some language.
pub fn is_collated(oid: i32) -> bool {
    matches!(oid, 19 | 25 | 1042 | 1043 | 1003 | 1009 | 1014 | 1015)
}

/// Whether it is the number of a type of arrays.
pub fn is_array(oid: i32) -> bool {
    oid != 0 && KNOWN.iter().any(|one| one.array == oid)
}

/// Bytes of a type's values, -1 where they differ, and how PostgreSQL would keep long ones.
pub fn stored(oid: i32) -> (i32, &'static str) {
    match KNOWN.iter().find(|one| one.oid == oid) {
        Some(one) if 0 < one.size => (i32::from(one.size), "p"),
        Some(one) if one.oid == 1700 => (-1, "m"),
        _ => (-1, "x"),
    }
}

/// What the type of that number is called within.
pub fn name_within(oid: i32) -> Option<&'static str> {
    KNOWN.iter().find(|one| one.oid == oid).map(|one| one.name)
}

/// What the standard's tables call it: an array by its elements' type with a line before.
pub fn udt_name(oid: i32) -> String {
    match KNOWN.iter().find(|one| one.array == oid) {
        Some(one) => format!("_{}", one.name),
        None => name_within(oid).unwrap_or("text").to_string(),
    }
}

/// The number of the type of that name, whichever of its names.
pub fn oid_of(name: &str) -> Option<i32> {
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let plain = name.strip_suffix("[]").unwrap_or(name);
    let plain = plain.strip_prefix('_').unwrap_or(plain);
    let plain = match plain {
        "int" => "int4",
        "decimal" => "numeric",
        "float" => "float8",
        other => other,
    };
    let found = KNOWN.iter().find(|one| one.name == plain || one.shown == plain)?;
    Some(if plain.len() < name.len() { found.array } else { found.oid })
}

/// The type of a column's or value's arrow type.
pub fn of_arrow(data_type: &DataType) -> i32 {
    match data_type {
        DataType::Boolean => 16,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => 21,
        DataType::Int32 | DataType::UInt16 => 23,
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => 20,
        DataType::Float32 => 700,
        DataType::Float64 => 701,
        DataType::Date32 => 1082,
        DataType::Timestamp(_, None) => 1114,
        DataType::Timestamp(_, Some(_)) => 1184,
        DataType::Interval(_) | DataType::Duration(_) => 1186,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => 17,
        DataType::Time64(_) | DataType::Time32(_) => 1083,
        DataType::Decimal128(..) | DataType::Decimal256(..) => 1700,
        DataType::List(of) => {
            let of = of_arrow(of.data_type());
            KNOWN.iter().find(|one| one.oid == of).map_or(1009, |one| one.array)
        }
        _ => 25,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_fit() {
        assert_eq!(oid_of("timestamptz"), Some(1184));
        assert_eq!(oid_of("double precision[]"), Some(1022));
        assert_eq!(oid_of("pg_catalog._text"), Some(1009));
        assert_eq!(type_name(1009).as_deref(), Some("text[]"));
        assert_eq!((oid_of("int"), oid_of("decimal[]")), (Some(23), Some(1231)));
        assert_eq!((type_name(0), oid_of("nothing")), (None, None));
        for one in KNOWN {
            assert_eq!(oid_of(one.name), Some(one.oid));
            assert_eq!(type_name(one.oid).as_deref(), Some(one.shown));
        }
    }
}
