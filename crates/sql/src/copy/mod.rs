//! `COPY`: statements, values of rows, and Parquet files.

pub(crate) mod copy_parquet;
pub mod copy_rows;
pub mod copy_values;
pub mod parquet;
pub(crate) mod rows_in;
pub(crate) mod statement;

pub use statement::{
    CopyFormat, CopyIn, CopyOut, CopyTo, Given, ParquetIn, RowFormat, RowsIn, TableRows, copy_in,
    copy_out,
};
