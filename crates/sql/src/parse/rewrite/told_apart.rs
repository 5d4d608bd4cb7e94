//! Calls that differ by casts within them alone, as `sum(x)` and `sum(x::float8)`: DataFusion calls both by
//! one name, and refuses the second. A function around a cast, which does nothing, has a name.

use crate::functions::told_apart::TOLD_APART;
use crate::parse::rewrite::expressions::{call, text_literal};
use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SelectItem, VisitorMut};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Names casts in calls of a select list that no other name would tell apart.
pub fn tell_casts_apart(select: &mut Select) {
    let mut calls = Calls::default();
    each(select, &mut |expr| {
        let _: ControlFlow<()> = walk_mut(expr, &mut calls);
    });
    let alike: BTreeSet<String> =
        calls.0.into_iter().filter(|(_, all)| 1 < all.len()).map(|(name, _)| name).collect();
    if alike.is_empty() {
        return;
    }
    let mut naming = Naming { alike, within: 0, queries: 0 };
    each(select, &mut |expr| {
        let _: ControlFlow<()> = walk_mut(expr, &mut naming);
    });
}

fn each(select: &mut Select, work: &mut impl FnMut(&mut Expr)) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            work(expr);
        }
    }
    select.having.iter_mut().for_each(work);
}

/// A call as DataFusion names it: without casts.
fn plain_name(expr: &Expr) -> String {
    struct Plain;
    impl VisitorMut for Plain {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
                *expr = (**inner).clone();
            }
            ControlFlow::Continue(())
        }
    }
    let mut expr = expr.clone();
    let _: ControlFlow<()> = walk_mut(&mut expr, &mut Plain);
    expr.to_string().to_lowercase()
}

/// The calls of each such name, as they were written.
#[derive(Default)]
struct Calls(BTreeMap<String, BTreeSet<String>>);

impl VisitorMut for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Function(_)) {
            let written = expr.to_string().to_lowercase();
            self.0.entry(plain_name(expr)).or_default().insert(written);
        }
        ControlFlow::Continue(())
    }
}

struct Naming {
    alike: BTreeSet<String>,
    /// Such calls around what is looked at.
    within: usize,
    /// Queries around it.
    queries: usize,
}

impl Naming {
    fn is_one(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Function(_)) && self.alike.contains(&plain_name(expr))
    }
}

impl VisitorMut for Naming {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.within += usize::from(self.is_one(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.is_one(expr) {
            self.within -= 1;
        }
        if let Expr::Cast { data_type, .. } = &*expr
            && 0 < self.within
            && self.queries == 0
        {
            let name = text_literal(data_type.to_string().to_lowercase());
            *expr = call(TOLD_APART, vec![expr.clone(), name]);
        }
        ControlFlow::Continue(())
    }
}
