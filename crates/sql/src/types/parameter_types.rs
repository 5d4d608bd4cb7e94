//! Arrow types that stand for types of PostgreSQL among types of parameters.

use datafusion::arrow::datatypes::DataType;

/// Stands for `jsonb` among types of parameters: arrow has none, and nothing else here has this one.
pub const JSONB_PARAMETER: DataType = DataType::LargeUtf8;

/// The same for `numeric`, whose values come as text with all their digits.
pub const NUMERIC_PARAMETER: DataType = DataType::Decimal256(76, 38);

/// The same for `uuid`.
pub const UUID_PARAMETER: DataType = DataType::FixedSizeBinary(16);
