//! The clauses of an expression: selectors, suffixes, modifiers of operators and aggregations.

use crate::ast::Grouping;
use crate::error::Span;
use crate::metricsql::ast::{BinaryOp, Duration, Matching};
use crate::metricsql::lexer::{Kind, Token, unescape_name};
use crate::metricsql::number::{parse_duration, seconds};
use crate::metricsql::parser::{Parser, Result, is_special_number};
use crate::metricsql::raw::{Filter, Join, Length, Operator, Piece, Raw, Rollup, Selector};
use model::MatchOp;

/// A node and the depth of the tree below it.
type Node = (Raw, usize);

/// One step of the query.
const ONE_STEP: Duration = Duration { ms: 0.0, steps: 1.0 };

impl Operator {
    /// An operator without any modifier.
    pub(super) fn plain(op: BinaryOp) -> Operator {
        Operator {
            op,
            returns_bool: false,
            keep_metric_names: false,
            matching: None,
            join: None,
            fill_left: None,
            fill_right: None,
        }
    }
}

impl Parser<'_> {
    // ---- selectors ----

    /// A selector whose name, if it has one before the braces, has been read.
    pub(super) fn selector(&mut self, name: Option<(String, Span)>) -> Result<Node> {
        let start = name.as_ref().map_or(self.peek().span, |(_, span)| *span);
        let mut sets = Vec::new();
        if self.peek().kind == Kind::LeftBrace {
            self.advance();
            sets = self.filter_sets()?;
        }
        if name.is_some() && sets.is_empty() {
            sets.push(Vec::new());
        }
        let span = start.to(self.previous());
        self.node(Raw::Selector(Box::new(Selector { name, sets, span })), 0)
    }

    /// What stands between braces, of which the opening one has been read.
    fn filter_sets(&mut self) -> Result<Vec<Vec<Filter>>> {
        let mut sets = Vec::new();
        if self.peek().kind == Kind::RightBrace {
            self.advance();
            return Ok(sets);
        }
        loop {
            sets.push(self.filters()?);
            if self.peek().kind == Kind::RightBrace {
                self.advance();
                return Ok(sets);
            }
            // All that else ends a set is an `or`.
            self.advance();
        }
    }

    /// The filters up to an `or` or the closing brace.
    fn filters(&mut self) -> Result<Vec<Filter>> {
        let mut filters = Vec::new();
        loop {
            filters.push(self.filter()?);
            let token = self.peek();
            match token.kind {
                Kind::RightBrace => return Ok(filters),
                Kind::Comma => {
                    self.advance();
                    if self.peek().kind == Kind::RightBrace {
                        return Ok(filters);
                    }
                }
                _ if self.is_word(token, "or") => return Ok(filters),
                _ => return Err(self.unexpected("\",\", \"or\" or \"}\"")),
            }
        }
    }

    fn filter(&mut self) -> Result<Filter> {
        let token = self.peek();
        let name = match token.kind {
            Kind::Name => unescape_name(self.text_of(token)),
            Kind::String => self.unquoted(token)?,
            _ => return Err(self.unexpected("the name of a label")),
        };
        self.advance();
        let next = self.peek();
        let op = match next.kind {
            Kind::Assign => MatchOp::Equal,
            Kind::Operator(BinaryOp::NotEqual) => MatchOp::NotEqual,
            Kind::Matches => MatchOp::Regex,
            Kind::MatchesNot => MatchOp::NotRegex,
            _ if self.ends_filter(next) => {
                return Ok(match token.kind {
                    Kind::String => Filter::Metric(name, token.span),
                    _ => Filter::Template(name, token.span),
                });
            }
            _ => return Err(self.unexpected("\"=\", \"!=\", \"=~\", \"!~\", \",\" or \"}\"")),
        };
        self.advance();
        let value = self.pieces()?;
        let span = token.span.to(self.previous());
        Ok(Filter::Matcher { label: name, op, value, span })
    }

    fn ends_filter(&self, token: Token) -> bool {
        matches!(token.kind, Kind::Comma | Kind::RightBrace) || self.is_word(token, "or")
    }

    /// `"a" + template + "b"`, where only strings may stand.
    fn pieces(&mut self) -> Result<Vec<Piece>> {
        let mut pieces = vec![self.piece()?];
        while self.is_operator(BinaryOp::Add) {
            let is_piece = match self.peek_second().kind {
                Kind::String => true,
                Kind::Name => {
                    let after = self.peek_after(2).kind;
                    !matches!(after, Kind::LeftParen | Kind::LeftBrace)
                }
                _ => false,
            };
            if !is_piece {
                break;
            }
            self.advance();
            pieces.push(self.piece()?);
        }
        Ok(pieces)
    }

    fn piece(&mut self) -> Result<Piece> {
        let token = self.peek();
        let piece = match token.kind {
            Kind::String => Piece::Literal(self.unquoted(token)?),
            Kind::Name => Piece::Name(unescape_name(self.text_of(token)), token.span),
            _ => return Err(self.unexpected("a string")),
        };
        self.advance();
        Ok(piece)
    }

    // ---- suffixes ----

    /// `[window:step]`, then `@` and `offset`, each at most once and in any order.
    pub(super) fn suffix(&mut self, node: Node) -> Result<Node> {
        let token = self.peek();
        match token.kind {
            Kind::LeftBracket | Kind::At => self.rollup(node),
            _ if self.is_word(token, "offset") => self.rollup(node),
            _ => Ok(node),
        }
    }

    fn rollup(&mut self, (expr, depth): Node) -> Result<Node> {
        let start = expr.span();
        let mut rollup = Rollup {
            expr,
            window: None,
            step: None,
            has_colon: false,
            offset: None,
            at: None,
            span: start,
        };
        let mut depth = depth;
        let mut bracket = start;
        if self.peek().kind == Kind::LeftBracket {
            bracket = self.peek_second().span;
            self.brackets(&mut rollup)?;
        }
        loop {
            if self.peek().kind == Kind::At && rollup.at.is_none() {
                self.advance();
                let (at, at_depth) = self.bare_operand()?;
                rollup.at = Some(at);
                depth = depth.max(at_depth);
            } else if rollup.offset.is_none() && self.accept_word("offset") {
                rollup.offset = Some(self.offset()?);
            } else {
                break;
            }
        }
        rollup.span = start.to(self.previous());
        let is_bare = rollup.window.is_none() && rollup.step.is_none() && !rollup.has_colon;
        if is_bare && rollup.offset.is_none() && rollup.at.is_none() {
            // `m[$__interval]` leaves the window to the function, as `m` does.
            if matches!(rollup.expr, Raw::Selector(_)) {
                return Ok((rollup.expr, depth));
            }
            rollup.window = Some(Length::Fixed(ONE_STEP, bracket));
        }
        self.node(Raw::Rollup(Box::new(rollup)), depth)
    }

    fn brackets(&mut self, rollup: &mut Rollup) -> Result<()> {
        self.advance();
        match self.peek().kind {
            Kind::Colon => {}
            Kind::Interval => {
                self.advance();
            }
            _ => rollup.window = Some(self.length()?),
        }
        if self.peek().kind == Kind::Colon {
            self.advance();
            rollup.has_colon = self.peek().kind == Kind::RightBracket;
            if !rollup.has_colon {
                rollup.step = Some(self.length()?);
            }
        }
        self.expect(Kind::RightBracket, "\"]\"")?;
        Ok(())
    }

    /// A duration without a sign, a number of seconds or a template of either.
    fn length(&mut self) -> Result<Length> {
        let token = self.peek();
        if token.kind == Kind::Name {
            self.advance();
            return Ok(Length::Template(unescape_name(self.text_of(token)), token.span));
        }
        self.fixed_length(false)
    }

    fn offset(&mut self) -> Result<Length> {
        if !self.is_operator(BinaryOp::Sub) {
            return self.length();
        }
        let minus = self.advance().span;
        match self.fixed_length(true)? {
            Length::Fixed(duration, span) => Ok(Length::Fixed(duration, minus.to(span))),
            template => Ok(template),
        }
    }

    fn fixed_length(&mut self, is_negative: bool) -> Result<Length> {
        let token = self.peek();
        let sign = if is_negative { -1.0 } else { 1.0 };
        let duration = match token.kind {
            Kind::Duration => parse_duration(self.text_of(token), is_negative)
                .map_err(|why| self.error(token.span, why))?,
            // `5M` would be months to some readers and millions of seconds to none.
            Kind::Number => match self.text_of(token).parse::<f64>() {
                Ok(value) => seconds(sign * value),
                Err(_) => return Err(self.unexpected("a duration or a number of seconds")),
            },
            Kind::Interval => Duration { ms: 0.0, steps: sign },
            _ => return Err(self.unexpected("a duration")),
        };
        self.advance();
        Ok(Length::Fixed(duration, token.span))
    }

    // ---- modifiers ----

    /// An operator, which is the next token, and its modifiers.
    pub(super) fn operator(&mut self, op: BinaryOp) -> Result<Operator> {
        self.advance();
        let mut operator = Operator::plain(op);
        let after = self.peek();
        if self.accept_word("bool") {
            if !op.is_comparison() {
                let message = format!("bool modifier cannot be applied to \"{}\"", op.as_str());
                return Err(self.error(after.span, message));
            }
            operator.returns_bool = true;
        }
        operator.matching = self.matching()?;
        if operator.matching.is_some() {
            operator.join = self.join(op)?;
        }
        while self.fill(&mut operator)? {}
        Ok(operator)
    }

    fn matching(&mut self) -> Result<Option<Matching>> {
        for (word, is_on) in [("on", true), ("ignoring", false)] {
            if self.accept_word(word) {
                return Ok(Some(Matching { is_on, labels: self.labels()? }));
            }
        }
        Ok(None)
    }

    fn join(&mut self, op: BinaryOp) -> Result<Option<Join>> {
        let token = self.peek();
        let is_left = self.is_word(token, "group_left");
        if !is_left && !self.is_word(token, "group_right") {
            return Ok(None);
        }
        if matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Unless) {
            let message = format!(
                "{} cannot be applied to \"{}\"",
                self.text_of(token).to_ascii_lowercase(),
                op.as_str()
            );
            return Err(self.error(token.span, message));
        }
        self.advance();
        let labels = if self.peek().kind != Kind::LeftParen {
            Vec::new()
        } else if self.peek_second().kind == Kind::Operator(BinaryOp::Mul) {
            self.advance();
            self.advance();
            self.expect(Kind::RightParen, "\")\"")?;
            vec!["*".to_string()]
        } else {
            self.labels()?
        };
        let prefix = if self.accept_word("prefix") { self.pieces()? } else { Vec::new() };
        Ok(Some(Join { is_left, labels, prefix }))
    }

    /// Reads one `fill(v)`, `fill_left(v)` or `fill_right(v)`; says whether there was one.
    fn fill(&mut self, operator: &mut Operator) -> Result<bool> {
        let token = self.peek();
        let is_fill = ["fill", "fill_left", "fill_right"].map(|word| self.is_word(token, word));
        if !is_fill.contains(&true) || self.peek_second().kind != Kind::LeftParen {
            return Ok(false);
        }
        if operator.op.is_set() {
            let op = operator.op.as_str();
            let message = format!("fill modifier cannot be applied to \"{op}\"");
            return Err(self.error(token.span, message));
        }
        self.advance();
        self.advance();
        let value = self.fill_value()?;
        self.expect(Kind::RightParen, "\")\"")?;
        let [is_both, is_left, is_right] = is_fill;
        if is_both || is_left {
            operator.fill_left = Some(value);
        }
        if is_both || is_right {
            operator.fill_right = Some(value);
        }
        Ok(true)
    }

    fn fill_value(&mut self) -> Result<f64> {
        let is_negative = self.is_operator(BinaryOp::Sub);
        if is_negative {
            self.advance();
        }
        let token = self.peek();
        let is_number = match token.kind {
            Kind::Number => true,
            Kind::Name => is_special_number(self.text_of(token)),
            _ => false,
        };
        if !is_number {
            return Err(self.unexpected("a number"));
        }
        self.advance();
        let value = self.number_of(token)?;
        Ok(if is_negative { -value } else { value })
    }

    pub(super) fn grouping(&mut self) -> Result<Option<Grouping>> {
        if self.accept_word("by") {
            return Ok(Some(Grouping::By(self.labels()?)));
        }
        if self.accept_word("without") {
            return Ok(Some(Grouping::Without(self.labels()?)));
        }
        Ok(None)
    }

    /// `(name, "any name", ...)`
    pub(super) fn labels(&mut self) -> Result<Vec<String>> {
        self.expect(Kind::LeftParen, "\"(\"")?;
        let mut labels = Vec::new();
        while self.peek().kind != Kind::RightParen {
            let token = self.peek();
            labels.push(match token.kind {
                Kind::Name => unescape_name(self.text_of(token)),
                Kind::String => self.unquoted(token)?,
                _ => return Err(self.unexpected("a name or \")\"")),
            });
            self.advance();
            if self.peek().kind != Kind::RightParen {
                self.expect(Kind::Comma, "\",\" or \")\"")?;
            }
        }
        self.advance();
        Ok(labels)
    }

    /// The number of groups behind `limit`.
    pub(super) fn limit(&mut self) -> Result<u64> {
        let token = self.peek();
        if let Kind::Number = token.kind
            && let Ok(limit) = self.text_of(token).parse()
        {
            self.advance();
            return Ok(limit);
        }
        Err(self.unexpected("a whole number of groups"))
    }
}
