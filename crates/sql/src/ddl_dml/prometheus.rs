//! `create_prometheus_table` and `create_prometheus_cx_table` of other names than `metrics`: relations whose samples are
//! kept apart from all others by a label, `__table__`, which they do not show.
//!
//! ```text
//! SELECT create_prometheus_table('node') ─► node, node_values, node_labels, node_copy: tables without rows that say so
//! COPY node FROM STDIN ─► samples with __table__="node"        SELECT .. FROM node ─► those, without that label
//! ```

use crate::ddl_dml::calls::{arguments, called, plain_name, text_of};
use crate::ddl_dml::definitions::defined::is_written;
use crate::ddl_dml::hypertables::unfinished_drops;
use crate::ddl_dml::rows::copies::column_for;
use crate::tables::heap::prometheus_tables::{LIKE, OF, PrometheusTable};
use crate::tables::heap::view::View;
use crate::tables::hypertables::shape::TABLE_LABEL;
use crate::tables::metrics::tables::{TABLES, Table as Shape, schema_of};
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::Query;
use tables::{Change, Schema};

const CREATE: &str = "create_prometheus_table";
const CREATE_CX: &str = "create_prometheus_cx_table";

/// What a table of samples of a name looks like; none where it is another one, or none. What reads statements has to
/// know.
pub type Shapes<'a> = &'a dyn Fn(&str) -> Option<&'static Shape>;

/// Of those that are there without anybody making them.
pub fn written(table: &str) -> Option<&'static Shape> {
    TABLES.iter().find(|one| one.name == table)
}

/// Of those that a session sees.
pub fn seen(view: &View, table: &str) -> Option<&'static Shape> {
    written(table).or_else(|| Some(PrometheusTable::of(view.get(table)?.schema())?.like))
}

/// What such a function was called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    name: &'static str,
    view: String,
    /// Names of others, as far as they were said.
    values: Option<String>,
    labels: Option<String>,
    samples: Option<String>,
    copy: Option<String>,
    is_normalized: bool,
}

impl Creation {
    /// Of a query that calls one of the functions, and does nothing else.
    ///
    /// # Errors
    /// When what it is called with makes no sense.
    pub fn of_query(query: &Query) -> Result<Option<Creation>, SqlError> {
        let Some(function) = called(query) else { return Ok(None) };
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let name = name.map(|ident| ident.value.to_ascii_lowercase()).unwrap_or_default();
        let Some(name) = [CREATE, CREATE_CX].into_iter().find(|one| *one == name) else {
            return Ok(None);
        };
        let mut made = Creation {
            name,
            view: String::new(),
            values: None,
            labels: None,
            samples: None,
            copy: None,
            is_normalized: true,
        };
        let places = [
            "metrics_view_name",
            "metrics_values_table_name",
            "metrics_labels_table_name",
            "metrics_samples_table_name",
            "metrics_copy_table_name",
            "normalized_tables",
            "use_timescaledb",
            "chunk_time_interval",
        ];
        for (given, expr) in arguments(&function, &places) {
            let text = text_of(expr).map(|text| plain_name(&text));
            match given.as_str() {
                "metrics_view_name" => made.view = text.unwrap_or_default(),
                "metrics_values_table_name" => made.values = text,
                "metrics_labels_table_name" => made.labels = text,
                "metrics_samples_table_name" => made.samples = text,
                "metrics_copy_table_name" => made.copy = text,
                "normalized_tables" => {
                    made.is_normalized = !expr.to_string().eq_ignore_ascii_case("false");
                }
                "use_timescaledb" | "chunk_time_interval" => {}
                other => {
                    let words = format!("{name} has no argument \"{other}\"");
                    return Err(SqlError::new("42883", words));
                }
            }
        }
        match made.view.is_empty() {
            true => Err(SqlError::new("42883", format!("{name} needs the name of a view"))),
            false => Ok(Some(made)),
        }
    }

    /// The column of its answer.
    pub fn answers(&self) -> &'static str {
        self.name
    }

    /// Whether what it makes is there without anybody making it.
    pub fn is_there(&self) -> bool {
        TABLES.iter().any(|one| one.name == self.view && one.takes_samples)
    }

    /// Makes the relations, within the transaction under way; what is answered.
    ///
    /// # Errors
    /// When one of those names is taken.
    pub fn done(&self, view: &View, notices: &mut Vec<String>) -> Result<String, SqlError> {
        let is_cx = self.name == CREATE_CX;
        let base = if is_cx { "metrics_cx" } else { "metrics" };
        let named = |given: &Option<String>, end: &str| {
            (given.clone().unwrap_or_else(|| format!("{}{end}", self.view)), format!("{base}{end}"))
        };
        let mut all = vec![(self.view.clone(), base.to_string())];
        match self.is_normalized {
            true => all.extend([
                named(&self.values, "_values"),
                named(&self.labels, "_labels"),
                named(&self.copy, "_copy"),
            ]),
            false => all.push(named(&self.samples, "_samples")),
        }
        for (name, like) in all {
            if is_written(&name) || is_reserved(view, &name) || view.get(&name).is_some() {
                return Err(SqlError::new("42P07", format!("relation \"{name}\" already exists")));
            }
            let like = TABLES.iter().find(|one| one.name == like);
            let like = like.ok_or_else(|| SqlError::unexpected("a table like none"))?;
            let mut schema = Schema::default();
            for field in schema_of(&like.shows()).fields() {
                schema.columns.push(column_for(field.name(), field)?);
            }
            schema.properties.extend([
                (OF.to_string(), self.view.clone()),
                (LIKE.to_string(), like.name.to_string()),
            ]);
            view.apply(vec![Change::Create { table: name, schema }])?;
        }
        tokio::task::block_in_place(|| unfinished_drops::finish(view, &self.view))?;
        notices.push(format!(
            "samples of \"{0}\" have the label {TABLE_LABEL}=\"{0}\" to PromQL and in \"metrics\"",
            self.view
        ));
        Ok(if is_cx { "t".to_string() } else { String::new() })
    }
}

/// Whether samples are kept under a name though no relation is called so: who takes it would take those.
pub fn is_reserved(view: &View, name: &str) -> bool {
    view.list()
        .iter()
        .any(|table| PrometheusTable::of(table.schema()).is_some_and(|one| one.of == name))
}

/// Takes relations of samples away: with the values go the samples. Returns whose are gone.
///
/// # Errors
/// When the view is still there, and is not to go with them.
pub fn drop_one(
    view: &View,
    name: &str,
    one: &PrometheusTable,
    cascades: crate::ddl_dml::views::define::Cascade,
    notices: &mut Vec<String>,
) -> Result<Option<String>, SqlError> {
    let others: Vec<String> = view
        .list()
        .iter()
        .filter(|table| {
            let found = PrometheusTable::of(table.schema()).filter(|other| other.of == one.of);
            found.is_some_and(|other| other.is_view()) && table.name() != name
        })
        .map(|table| table.name().to_string())
        .collect();
    if one.is_view() || others.is_empty() {
        view.apply(vec![Change::Drop { table: name.to_string() }])?;
    } else if cascades == crate::ddl_dml::views::define::Cascade::Yes {
        notices.extend(others.iter().map(|other| format!("drop cascades to view {other}")));
        let all = others.into_iter().chain([name.to_string()]);
        view.apply(all.map(|table| Change::Drop { table }).collect())?;
    } else {
        let words = format!("cannot drop table {name} because other objects depend on it");
        let detail = format!("view {} depends on table {name}", others.join(", "));
        let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
        return Err(SqlError::new("2BP01", words).with_detail(detail).with_hint(hint));
    }
    Ok(one.keeps_samples().then(|| one.of.clone()))
}
