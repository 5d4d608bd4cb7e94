//! The functions that say the same in every session, each in a room of its own.

use crate::functions::arrays::array_fill::array_fill;
use crate::functions::arrays::no_null_array::no_null_array;
use crate::functions::arrays::{array_sets, array_slices, null_arrays};
use crate::functions::json::{
    json_gathered, jsonb_changed, jsonb_functions, jsonb_makers, jsonb_parts,
};
use crate::functions::now::now;
use crate::functions::numbers::width_bucket::width_bucket;
use crate::functions::numbers::{bits, degrees, number_functions};
use crate::functions::templates::conversions_by_template;
use crate::functions::text::characters::chr;
use crate::functions::text::levenshtein::levenshtein;
use crate::functions::text::regexp_replace::regexp_replace;
use crate::functions::text::{
    bytea, bytea_parts, formatted, identifiers, like_patterns, regexps, text_search, unicode_forms,
};
use crate::functions::told_apart::told_apart;
use crate::functions::{calendar, gapfill, generate_series, markers, prom, ties_marker, vectors};
use crate::types::casts::special_arrays;
use crate::types::numeric::conversions;
use crate::types::time::clock_precision::clock_precision;
use crate::types::time::interval_limits::interval_limits;
use crate::types::time::intervals::time_bucket;
use crate::types::uuids::uuid_in;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;

/// Gives them to whoever begins with a context.
pub fn register(context: &SessionContext) {
    jsonb_functions::functions().for_each(|one| context.register_udf((*one).clone()));
    let all = [now(), time_bucket(), no_null_array()].into_iter();
    let all = all.chain(vectors::functions()).chain(gapfill::functions());
    let all = all.chain(prom::functions()).chain(jsonb_parts::functions());
    let all = all.chain(jsonb_makers::functions()).chain(markers::functions());
    let all = all.chain(conversions_by_template::functions()).chain(calendar::functions());
    let all = all.chain(bytea_parts::functions()).chain(degrees::functions());
    let all = all.chain(identifiers::functions());
    let all = all.chain(bytea::functions()).chain(json_gathered::functions());
    let all = all.chain(jsonb_changed::functions());
    let all = all.chain(regexps::functions()).chain(of_few());
    let all = all.chain(like_patterns::functions()).chain(text_search::functions());
    let all = all.chain(unicode_forms::functions());
    let all = all.chain(number_functions::scalar_functions());
    let all = all.chain(special_arrays::functions());
    all.for_each(|function| context.register_udf(function));
    null_arrays::register(context);
    bytea_parts::register(context);
}

/// Those that have no family.
fn of_few() -> [ScalarUDF; 17] {
    [
        chr(),
        conversions::list_limits(),
        regexp_replace(),
        array_fill(),
        clock_precision(),
        interval_limits(),
        bits::bit_not(),
        array_sets::overlaps(),
        formatted::format(),
        width_bucket(),
        levenshtein(),
        uuid_in(),
        generate_series::list(),
        told_apart(),
        array_slices::slice(),
        array_slices::dimensions(),
        ties_marker::marker(),
    ]
}
