//! What the observed answers leave open: errors, and labels that grow.

use super::*;
use crate::time::Grid;
use model::Labels;

fn run(name: &str, value: &str, texts: &[&str]) -> Result<Vec<Series>> {
    let grid = Grid { start_ms: 0, step_ms: 1000, len: 1 };
    let context = CallContext::new(name, grid);
    let labels = Labels::from_pairs(&[("a", value)]);
    let mut arguments = vec![Argument::Series(vec![Series { labels, values: vec![1.0] }])];
    arguments.extend(texts.iter().map(|text| Argument::text(text.to_string())));
    call(&context, arguments)
}

#[test]
fn all_functions_are_known() {
    let names = "alias drop_common_labels label_copy label_del label_graphite_group label_join \
        label_keep label_lowercase label_map label_match label_mismatch label_move \
        label_replace label_set label_transform label_uppercase label_value labels_equal \
        sort_by_label sort_by_label_desc sort_by_label_numeric sort_by_label_numeric_desc";
    for name in names.split_whitespace() {
        if let Err(error) = run(name, "x", &[]) {
            let text = error.to_string();
            assert!(text.contains("1 arguments given"), "{text}");
        }
    }
    for name in ["label_", "label_change", "sort_by_label_size"] {
        let error = run(name, "x", &["a"]).unwrap_err().to_string();
        assert!(error.ends_with("no such function"), "{error}");
    }
}

#[test]
fn labels_do_not_grow_for_ever() {
    let long = "x".repeat(40_000);
    let check = |name, texts: &[&str]| {
        let error = run(name, &long, texts).unwrap_err().to_string();
        assert!(error.contains("the limit is 65536"), "{error}");
    };
    check("label_join", &["b", "", "a", "a"]);
    check("label_copy", &["a", "b"]);
    check("label_replace", &["b", "$1$1", "a", "(.*)"]);
    check("label_transform", &["a", "x", "yy"]);
    check("label_transform", &["a", "", "y"]);
    assert!(run("label_join", &long, &["b", "", "a"]).is_err());
    assert!(run("label_replace", &long, &["a", "$1$1", "a", "(.*)y"]).is_err());
    assert!(run("label_transform", &long, &["a", "x+", "y"]).is_ok());
}

#[test]
fn cases_of_single_characters() {
    let rows = run("label_uppercase", "straße ünï", &["a"]).unwrap();
    assert_eq!(rows[0].labels.get("a"), Some("STRAßE ÜNÏ"));
    let rows = run("label_lowercase", "ÀÉ İ", &["a"]).unwrap();
    assert_eq!(rows[0].labels.get("a"), Some("àé İ"));
}
