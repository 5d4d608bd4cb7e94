//! Types of the arguments that PostgreSQL's functions take (pg_proc of PostgreSQL 15), for two purposes: a call with types
//! that no function takes is refused, and a literal in quotes is read as the type that the function wants
//! (<https://www.postgresql.org/docs/15/typeconv-func.html>).
//!
//! ```text
//! ("gcd", "ii ll nn"): gcd(integer, integer), gcd(bigint, bigint), gcd(numeric, numeric)
//! ```

use crate::types::categories::{Category, known_type};
use crate::types::error::SqlError;
use crate::types::special_fields::{JSON, JSONB};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Expr;

/// Functions with the types of their arguments, a letter each: `s` smallint, `i` integer, `l` bigint, `r` real, `f` double
/// precision, `n` numeric, `t` text, `b` boolean, `d` date, `p` timestamp, `z` timestamptz, `v` interval, `c` time, `y`
/// bytea, `j` json, `J` jsonb, `T` text[], `I` integer[], `a` any array, `e` any type.
#[rustfmt::skip]
const SIGNATURES: &[(&str, &str)] = &[
    ("abs", "f i l n r s"),
    ("acos", "f"),
    ("acosd", "f"),
    ("acosh", "f"),
    ("age", "p pp z zz"),
    ("array_fill", "eI eII"),
    ("ascii", "t"),
    ("asin", "f"),
    ("asind", "f"),
    ("asinh", "f"),
    ("atan", "f"),
    ("atan2", "ff"),
    ("atan2d", "ff"),
    ("atand", "f"),
    ("atanh", "f"),
    ("avg", "f i l n r s v"),
    ("bit_and", "i l s"),
    ("bit_length", "t y"),
    ("bit_or", "i l s"),
    ("bit_xor", "i l s"),
    ("bool_and", "b"),
    ("bool_or", "b"),
    ("btrim", "t tt yy"),
    ("cbrt", "f"),
    ("ceil", "f n"),
    ("ceiling", "f n"),
    ("char_length", "t"),
    ("character_length", "t"),
    ("chr", "i"),
    ("convert_from", "yt"),
    ("convert_to", "tt"),
    ("corr", "ff"),
    ("cos", "f"),
    ("cosd", "f"),
    ("cosh", "f"),
    ("cot", "f"),
    ("cotd", "f"),
    ("covar_pop", "ff"),
    ("covar_samp", "ff"),
    ("date_bin", "vpp vzz"),
    ("date_part", "tc td tp tv tz"),
    ("date_trunc", "tp tv tz tzt"),
    ("decode", "tt"),
    ("degrees", "f"),
    ("div", "nn"),
    ("encode", "yt"),
    ("every", "b"),
    ("exp", "f n"),
    ("factorial", "l"),
    ("floor", "f n"),
    ("gcd", "ii ll nn"),
    ("get_bit", "yl"),
    ("get_byte", "yi"),
    ("initcap", "t"),
    ("is_normalized", "t tt"),
    ("isfinite", "d p v z"),
    ("json_array_elements", "j"),
    ("json_array_elements_text", "j"),
    ("json_array_length", "j"),
    ("json_each", "j"),
    ("json_each_text", "j"),
    ("json_object_keys", "j"),
    ("json_strip_nulls", "j"),
    ("json_typeof", "j"),
    ("jsonb_array_elements", "J"),
    ("jsonb_array_elements_text", "J"),
    ("jsonb_array_length", "J"),
    ("jsonb_each", "J"),
    ("jsonb_each_text", "J"),
    ("jsonb_insert", "JTJ JTJb"),
    ("jsonb_object_keys", "J"),
    ("jsonb_pretty", "J"),
    ("jsonb_set", "JTJ JTJb"),
    ("jsonb_strip_nulls", "J"),
    ("jsonb_typeof", "J"),
    ("justify_days", "v"),
    ("justify_hours", "v"),
    ("justify_interval", "v"),
    ("lag", "e ei eie"),
    ("lcm", "ii ll nn"),
    ("lead", "e ei eie"),
    ("left", "ti"),
    ("length", "t y yt"),
    ("ln", "f n"),
    ("log", "f n nn"),
    ("log10", "f n"),
    ("lower", "t"),
    ("lpad", "ti tit"),
    ("ltrim", "t tt yy"),
    ("make_date", "iii"),
    ("make_interval", "i ii iii iiii iiiii iiiiii iiiiiif"),
    ("make_time", "iif"),
    ("make_timestamp", "iiiiif"),
    ("make_timestamptz", "iiiiif iiiiift"),
    ("max", "a c d f i l n p r s t v z"),
    ("md5", "t y"),
    ("min", "a c d f i l n p r s t v z"),
    ("min_scale", "n"),
    ("mod", "ii ll nn ss"),
    ("normalize", "t tt"),
    ("nth_value", "ei"),
    ("ntile", "i"),
    ("octet_length", "t y"),
    ("overlay", "tti ttii yyi yyii"),
    ("parse_ident", "t tb"),
    ("power", "ff nn"),
    ("quote_ident", "t"),
    ("radians", "f"),
    ("regexp_count", "tt tti ttit"),
    ("regexp_instr", "tt tti ttii ttiii ttiiit ttiiiti"),
    ("regexp_like", "tt ttt"),
    ("regexp_match", "tt ttt"),
    ("regexp_matches", "tt ttt"),
    ("regexp_replace", "ttt ttti tttii tttiit tttt"),
    ("regexp_split_to_array", "tt ttt"),
    ("regexp_split_to_table", "tt ttt"),
    ("regexp_substr", "tt tti ttii ttiit ttiiti"),
    ("regr_avgx", "ff"),
    ("regr_avgy", "ff"),
    ("regr_intercept", "ff"),
    ("regr_r2", "ff"),
    ("regr_slope", "ff"),
    ("regr_sxx", "ff"),
    ("regr_sxy", "ff"),
    ("regr_syy", "ff"),
    ("repeat", "ti"),
    ("replace", "ttt"),
    ("reverse", "t"),
    ("right", "ti"),
    ("round", "f n ni"),
    ("rpad", "ti tit"),
    ("rtrim", "t tt yy"),
    ("scale", "n"),
    ("set_bit", "yli"),
    ("set_byte", "yii"),
    ("sha224", "y"),
    ("sha256", "y"),
    ("sha384", "y"),
    ("sha512", "y"),
    ("sign", "f n"),
    ("sin", "f"),
    ("sind", "f"),
    ("sinh", "f"),
    ("split_part", "tti"),
    ("sqrt", "f n"),
    ("starts_with", "tt"),
    ("stddev", "f i l n r s"),
    ("stddev_pop", "f i l n r s"),
    ("stddev_samp", "f i l n r s"),
    ("string_agg", "tt yy"),
    ("string_to_array", "tt ttt"),
    ("strpos", "tt yy"),
    ("substr", "ti tii yi yii"),
    ("substring", "ti tii tt ttt yi yii"),
    ("sum", "f i l n r s v"),
    ("tan", "f"),
    ("tand", "f"),
    ("tanh", "f"),
    ("timezone", "tp tz vp vz"),
    ("to_char", "ct ft it lt nt pt rt vt zt"),
    ("to_date", "tt"),
    ("to_hex", "i l"),
    ("to_number", "tt"),
    ("to_timestamp", "f tt"),
    ("translate", "ttt"),
    ("trim_scale", "n"),
    ("trunc", "f n ni"),
    ("unistr", "t"),
    ("upper", "t"),
    ("var_pop", "f i l n r s"),
    ("var_samp", "f i l n r s"),
    ("variance", "f i l n r s"),
    ("width_bucket", "ea fffi nnni"),
];

/// Names that the planner has for functions of PostgreSQL.
const PLANNED_NAMES: &[(&str, &str)] = &[("character_length", "length"), ("signum", "sign")];

/// An argument of a call, before the call has a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A literal in quotes, NULL or a parameter: the function decides its type.
    Open,
    /// An expression with a type of its own.
    Typed,
}

/// The type that a function gives to an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The type of this letter.
    One(char),
    /// A text, or nothing that is known before the other arguments have types.
    Unknown,
    /// One of several types of numbers.
    Number,
    /// Several types, between which nothing decides.
    NotUnique,
}

fn signatures(name: &str) -> Option<&'static str> {
    let at = SIGNATURES.binary_search_by_key(&name, |(one, _)| one).ok()?;
    Some(SIGNATURES[at].1)
}

/// The category of a letter; none of types that take any.
fn category(letter: char) -> Option<Category> {
    Some(match letter {
        's' | 'i' | 'l' | 'r' | 'f' | 'n' => Category::Number,
        't' => Category::Text,
        'b' => Category::Boolean,
        'd' | 'p' | 'z' => Category::Date,
        'v' => Category::Interval,
        'c' => Category::Time,
        'y' => Category::Bytea,
        'j' | 'J' => Category::Special,
        'a' | 'T' | 'I' => Category::Array,
        _ => return None,
    })
}

/// Returns true for a function that has signatures here: it returns one value.
pub fn is_scalar_function(name: &str) -> bool {
    SIGNATURES.iter().any(|(one, _)| *one == name)
}

/// The type that a function gives to an open argument.
pub fn wanted_type(name: &str, args: &[Argument], at: usize) -> Wanted {
    let Some(all) = signatures(name) else { return Wanted::Unknown };
    let fitting: Vec<Vec<char>> = all
        .split(' ')
        .map(|one| one.chars().collect())
        .filter(|one: &Vec<char>| one.len() == args.len())
        .collect();
    let letters: Vec<char> = fitting.iter().map(|one| one[at]).collect();
    let Some(first) = letters.first().copied() else { return Wanted::Unknown };
    if letters.iter().all(|one| *one == first) {
        return Wanted::One(first);
    }
    if letters.contains(&'t') || letters.iter().any(|one| category(*one).is_none()) {
        return Wanted::Unknown;
    }
    // A typed argument decides where the functions differ in it.
    let decides = |other: usize| {
        args[other] == Argument::Typed && fitting.iter().any(|one| one[other] != fitting[0][other])
    };
    let is_decided = (0..args.len()).any(decides);
    let is_one_category = letters.iter().all(|one| category(*one) == category(first));
    let preferred = letters.iter().copied().find(|one| ['f', 'z'].contains(one));
    match (is_decided, is_one_category, preferred) {
        (false, true, Some(preferred)) => Wanted::One(preferred),
        (false, _, _) => Wanted::NotUnique,
        (true, true, _) if category(first) == Some(Category::Number) => Wanted::Number,
        (true, ..) => Wanted::Unknown,
    }
}

/// Whether a value of a known type may stand where a letter does. A text may be a value of a special type whose name a
/// function lost.
fn takes(letter: char, (known, name): &(Category, String)) -> bool {
    let Some(wanted) = category(letter) else { return true };
    match (wanted, known) {
        // `json_typeof` and its like are those of `jsonb` here.
        (Category::Special, Category::Special) => name == JSONB || name == JSON,
        (Category::Special, Category::Text) | (Category::Interval, Category::Time) => true,
        (wanted, known) => wanted == *known,
    }
}

/// Checks that PostgreSQL has a function of this name for these types.
///
/// # Errors
/// 42883 when it has none.
pub fn check_types(name: &str, args: &[Expr], schema: &DFSchema) -> Result<()> {
    let planned = PLANNED_NAMES.iter().find(|(planned, _)| *planned == name);
    let name = planned.map_or(name, |(_, name)| name);
    let Some(all) = signatures(name) else { return Ok(()) };
    let types: Vec<Option<(Category, String)>> =
        args.iter().map(|one| known_type(one, schema)).collect();
    let fits = |letters: &str| {
        let mut both = letters.chars().zip(&types);
        both.all(|(letter, known)| known.as_ref().is_none_or(|known| takes(letter, known)))
    };
    let mut fitting = all.split(' ').filter(|one| one.len() == args.len()).peekable();
    // Another number of arguments is not a matter of types.
    if fitting.peek().is_none() || fitting.any(fits) {
        return Ok(());
    }
    let shown =
        types.iter().map(|known| known.as_ref().map_or("unknown", |(_, name)| name.as_str()));
    let shown: Vec<&str> = shown.collect();
    let words = format!("function {name}({}) does not exist", shown.join(", "));
    let hint = "No function matches the given name and argument types. Add explicit type casts.";
    Err(DataFusionError::External(Box::new(SqlError::new("42883", words).with_hint(hint))))
}

/// Checks the types and constants of the arguments of a window function.
///
/// # Errors
/// 42883 when there is no such function, 22016 for a row before the first.
pub fn check_window_call(name: &str, args: &[Expr], schema: &DFSchema) -> Result<()> {
    check_types(name, args, schema)?;
    let is_before_first = |place: &Expr| match place {
        Expr::Literal(ScalarValue::Int64(Some(place)), _) => *place < 1,
        Expr::Negative(_) => true,
        _ => false,
    };
    match (name, args) {
        ("nth_value", [_, place]) if is_before_first(place) => {
            let words = "argument of nth_value must be greater than zero";
            Err(DataFusionError::External(Box::new(SqlError::new("22016", words))))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Argument::{Open, Typed};

    #[test]
    fn names_are_sorted() {
        assert!(SIGNATURES.is_sorted_by(|(one, _), (other, _)| one < other));
    }

    #[test]
    fn open_arguments_get_the_type_that_postgresql_gives_them() {
        for (name, args, at, wanted) in [
            ("sqrt", &[Open][..], 0, Wanted::One('f')),
            ("chr", &[Open], 0, Wanted::One('i')),
            ("upper", &[Open], 0, Wanted::One('t')),
            ("length", &[Open], 0, Wanted::Unknown),
            ("gcd", &[Open, Open], 1, Wanted::NotUnique),
            ("gcd", &[Typed, Open], 1, Wanted::Number),
            ("isfinite", &[Open], 0, Wanted::NotUnique),
            ("date_bin", &[Open, Typed, Open], 0, Wanted::One('v')),
            ("date_bin", &[Open, Typed, Open], 2, Wanted::Unknown),
            ("date_bin", &[Open, Open, Open], 2, Wanted::One('z')),
            ("no_such_function", &[Open], 0, Wanted::Unknown),
        ] {
            assert_eq!(wanted_type(name, args, at), wanted, "{name} {args:?} {at}");
        }
    }
}
