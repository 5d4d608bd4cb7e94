//! Types of parameters that clients declare.

use crate::parse::rewrite::expressions::text_array;
use crate::parse::special_parameters::Specials;
use crate::types::traversal::walk_mut;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo, Ident, Statement, TimezoneInfo, Value,
    ValueWithSpan, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Types of parameters, by their names: `$1` and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Declared {
    pub(crate) types: Arc<BTreeMap<String, DataType>>,
    /// Types of PostgreSQL that arrow has as texts. They hold where a parameter is a column of the result by itself.
    specials: Arc<BTreeMap<String, &'static str>>,
}

impl Declared {
    /// Those of the first, the second and so on, where they are said and known here.
    pub fn new(types: impl IntoIterator<Item = Option<DataType>>) -> Declared {
        let named = named(types).filter(|(_, ty)| sql_type(ty).is_some());
        Declared { types: Arc::new(named.collect()), ..Declared::default() }
    }

    /// Adds the names of special types, as `uuid`, of the first, the second and so on.
    #[must_use]
    pub fn with_specials(self, types: impl IntoIterator<Item = Option<&'static str>>) -> Declared {
        Declared { specials: Arc::new(named(types).collect()), ..self }
    }

    /// Whether anything is said of a parameter.
    pub fn says(&self, name: &str) -> bool {
        self.types.contains_key(name)
    }

    /// A statement that says the types, and what its parameters are called otherwise.
    pub(crate) fn said(
        &self,
        mut statement: Statement,
        parameters: &BTreeSet<String>,
    ) -> (Statement, BTreeMap<String, String>) {
        if !self.specials.is_empty() {
            Specials(&self.specials).read(&mut statement);
        }
        let (said, others): (Vec<&String>, Vec<&String>) =
            parameters.iter().partition(|name| self.says(name));
        let types = said.iter().filter_map(|name| sql_type(self.types.get(*name)?));
        let data_types: Vec<SqlType> = types.collect();
        if data_types.is_empty() {
            return (statement, BTreeMap::new());
        }
        let numbered = said.into_iter().chain(others).enumerate();
        let named = numbered.map(|(at, name)| (name.clone(), format!("${}", at + 1)));
        let mut names = Names(named.collect());
        let _: ControlFlow<()> = walk_mut(&mut statement, &mut names);
        let (name, statement) = (Ident::new("parameters"), Box::new(statement));
        let back = names.0.into_iter().map(|(own, other)| (other, own)).collect();
        (Statement::Prepare { name, data_types, statement }, back)
    }
}

pub(crate) fn named<T>(
    types: impl IntoIterator<Item = Option<T>>,
) -> impl Iterator<Item = (String, T)> {
    let all = types.into_iter().enumerate();
    all.filter_map(|(at, ty)| Some((format!("${}", at + 1), ty?)))
}

/// New names of parameters.
pub(crate) struct Names(BTreeMap<String, String>);

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::Placeholder(name) = &mut value.value
            && let Some(other) = self.0.get(name)
        {
            name.clone_from(other);
        }
        ControlFlow::Continue(())
    }
}

/// A type in SQL's words; none of those that are read as what they stand beside.
pub(crate) fn sql_type(ty: &DataType) -> Option<SqlType> {
    Some(match ty {
        DataType::Boolean => SqlType::Boolean,
        DataType::Int16 => SqlType::SmallInt(None),
        DataType::Int32 => SqlType::Int(None),
        DataType::Int64 => SqlType::BigInt(None),
        DataType::Float32 => SqlType::Real,
        DataType::Float64 => SqlType::DoublePrecision,
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            SqlType::Numeric(ExactNumberInfo::None)
        }
        DataType::Date32 => SqlType::Date,
        DataType::Timestamp(_, zone) => {
            let zone = match zone {
                Some(_) => TimezoneInfo::WithTimeZone,
                None => TimezoneInfo::WithoutTimeZone,
            };
            SqlType::Timestamp(None, zone)
        }
        DataType::Time64(_) => SqlType::Time(None, TimezoneInfo::None),
        DataType::Interval(_) => SqlType::Interval { fields: None, precision: None },
        DataType::Binary => SqlType::Bytea,
        DataType::List(of) if of.data_type().is_string() => text_array(),
        DataType::List(of) => {
            let of = Box::new(sql_type(of.data_type())?);
            SqlType::Array(ArrayElemTypeDef::SquareBracket(of, None))
        }
        _ => return None,
    })
}
