//! The table of PromQL's aggregations: a sentence, an example and its answer for each operator.
//!
//! What the parser needs to know of them is [`AggregateOp`] itself; this is what people read. Each
//! example is evaluated like those of the functions.

use crate::ast::AggregateOp;

/// What there is to say about one operator.
#[derive(Debug)]
pub struct Aggregation {
    /// The operator.
    pub op: AggregateOp,
    /// What it does.
    pub doc: &'static str,
    /// A use of it that needs no data.
    pub example: &'static str,
    /// What the example gives at 01:00:00 on the first day of 1970.
    pub answer: &'static str,
}

const fn row(
    op: AggregateOp,
    doc: &'static str,
    example: &'static str,
    answer: &'static str,
) -> Aggregation {
    Aggregation { op, doc, example, answer }
}

use AggregateOp::{
    Avg, Bottomk, Count, CountValues, Group, LimitRatio, Limitk, Max, Min, Quantile, Stddev,
    Stdvar, Sum, Topk,
};

/// All of them, by name.
#[rustfmt::skip]
pub static AGGREGATIONS: &[Aggregation] = &[
    row(Avg, "The mean.", r#"avg(vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 6"),
    row(Bottomk, "So many series of each group with the smallest values.", r#"bottomk(1, vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 4"),
    row(Count, "How many series there are.", r#"count(vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 2"),
    row(CountValues, "How many series have each value, which goes into the label that is named.", r#"count_values("value", vector(4) or label_replace(vector(4), "a", "x", "", ""))"#, r#"{value="4"} 2"#),
    row(Group, "1 for each group.", "group(vector(7))", "{} 1"),
    row(LimitRatio, "That share of the series of each group, always the same ones.", "limit_ratio(1, vector(7))", "{} 7"),
    row(Limitk, "So many series of each group.", "limitk(1, vector(7))", "{} 7"),
    row(Max, "The largest value.", r#"max(vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 8"),
    row(Min, "The smallest value.", r#"min(vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 4"),
    row(Quantile, "The quantile over the values of each group.", r#"quantile(0.5, vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 6"),
    row(Stddev, "The standard deviation.", r#"stddev(vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 2"),
    row(Stdvar, "The variance.", r#"stdvar(vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 4"),
    row(Sum, "The sum.", r#"sum(vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, "{} 12"),
    row(Topk, "So many series of each group with the largest values.", r#"topk(1, vector(4) or label_replace(vector(8), "a", "x", "", ""))"#, r#"{a="x"} 8"#),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_complete() {
        let name = |row: &Aggregation| row.op.as_str();
        assert!(AGGREGATIONS.windows(2).all(|pair| name(&pair[0]) < name(&pair[1])));
        for op in AggregateOp::ALL {
            assert_eq!(AGGREGATIONS.iter().filter(|row| row.op == op).count(), 1, "{op:?}");
        }
        for row in AGGREGATIONS {
            assert!(row.doc.ends_with('.'), "{}", row.doc);
            assert!(row.example.starts_with(&format!("{}(", name(row))), "{}", row.example);
        }
    }
}
