//! Traversals of syntax trees and plans that are compiled once.
//!
//! The traversals of sqlparser and DataFusion are generic in the visitor or closure: each caller gets a copy
//! of the functions of all 400 node types. Those copies were a quarter of this crate's machine code. The
//! functions here take any visitor or closure and pass a reference to a trait object on.

mod plans;
mod syntax;

pub(crate) use plans::{PlanTraversal, Traversal};
pub(crate) use syntax::{walk, walk_mut, walk_relations};
