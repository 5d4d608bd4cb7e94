//! Traversals of syntax trees of SQL.

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut,
    Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Calls a visitor for the nodes below, and including, `node`, until it breaks.
pub(crate) fn walk<B>(node: &impl Visit, visitor: &mut impl Visitor<Break = B>) -> ControlFlow<B> {
    let mut stop = BreakValue { visitor, value: None };
    let end = node.visit(&mut Erased::<dyn Visitor<Break = ()>>(&mut stop));
    break_of(end, stop.value)
}

/// Calls a visitor for the nodes below, and including, `node`, which it may change, until it breaks.
pub(crate) fn walk_mut<B>(
    node: &mut impl VisitMut,
    visitor: &mut impl VisitorMut<Break = B>,
) -> ControlFlow<B> {
    let mut stop = BreakValue { visitor, value: None };
    let end = node.visit(&mut Erased::<dyn VisitorMut<Break = ()>>(&mut stop));
    break_of(end, stop.value)
}

/// Calls a function for the names of tables below `node`, until it breaks.
pub(crate) fn walk_relations<B>(
    node: &impl Visit,
    visit: impl FnMut(&ObjectName) -> ControlFlow<B>,
) -> ControlFlow<B> {
    walk(node, &mut Relations(visit))
}

fn break_of<B>(end: ControlFlow<()>, value: Option<B>) -> ControlFlow<B> {
    match (end, value) {
        (ControlFlow::Break(()), Some(value)) => ControlFlow::Break(value),
        (_, value) => {
            debug_assert!(value.is_none(), "the walk stops when its visitor breaks");
            ControlFlow::Continue(())
        }
    }
}

struct Relations<F>(F);

impl<B, F: FnMut(&ObjectName) -> ControlFlow<B>> Visitor for Relations<F> {
    type Break = B;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<B> {
        (self.0)(relation)
    }
}

/// A visitor of a type that is known when the program runs. The walk is compiled for this type alone.
struct Erased<'a, V: ?Sized>(&'a mut V);

/// A visitor whose value of the break is stored beside it, so that all breaks have the same type.
struct BreakValue<'a, V, B> {
    visitor: &'a mut V,
    value: Option<B>,
}

impl<V, B> BreakValue<'_, V, B> {
    fn store(&mut self, flow: ControlFlow<B>) -> ControlFlow<()> {
        match flow {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(value) => {
                self.value = Some(value);
                ControlFlow::Break(())
            }
        }
    }
}

/// Passes each call of the traits' methods on.
macro_rules! forward {
    ($trait:ident: $($method:ident($node:ty)),* $(,)?) => {
        impl $trait for Erased<'_, dyn $trait<Break = ()> + '_> {
            type Break = ();

            $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
                self.0.$method(node)
            })*
        }

        impl<B, V: $trait<Break = B>> $trait for BreakValue<'_, V, B> {
            type Break = ();

            $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
                let flow = self.visitor.$method(node);
                self.store(flow)
            })*
        }
    };
}

forward! { Visitor:
    pre_visit_query(&Query), post_visit_query(&Query),
    pre_visit_select(&Select), post_visit_select(&Select),
    pre_visit_relation(&ObjectName), post_visit_relation(&ObjectName),
    pre_visit_table_factor(&TableFactor), post_visit_table_factor(&TableFactor),
    pre_visit_expr(&Expr), post_visit_expr(&Expr),
    pre_visit_statement(&Statement), post_visit_statement(&Statement),
    pre_visit_value(&ValueWithSpan), post_visit_value(&ValueWithSpan),
}

forward! { VisitorMut:
    pre_visit_query(&mut Query), post_visit_query(&mut Query),
    pre_visit_select(&mut Select), post_visit_select(&mut Select),
    pre_visit_relation(&mut ObjectName), post_visit_relation(&mut ObjectName),
    pre_visit_table_factor(&mut TableFactor), post_visit_table_factor(&mut TableFactor),
    pre_visit_expr(&mut Expr), post_visit_expr(&mut Expr),
    pre_visit_statement(&mut Statement), post_visit_statement(&mut Statement),
    pre_visit_value(&mut ValueWithSpan), post_visit_value(&mut ValueWithSpan),
}
