//! Text of a script to its commands.

use super::sequence::{Item, parse_line, parse_number, parse_starts, parse_time};
use histogram::Noted;
use model::Labels;

/// What is wrong with a script itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Point {
    /// A number.
    Number(f64),
    /// A histogram; an expectation tells whether its reset hint counts.
    Histogram(Box<Noted>),
}

/// One command of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Forget all samples.
    Clear,
    /// Add samples: milliseconds and values per series.
    Load {
        /// The series and their samples.
        series: Vec<(Labels, Vec<(i64, Point)>)>,
        /// The start timestamps of samples: milliseconds of both per series.
        starts: Vec<(Labels, Vec<(i64, i64)>)>,
        /// Whether classic histograms among them are to be loaded as native ones too.
        is_with_native: bool,
        /// The line it stands on, from 1.
        line: usize,
    },
    /// Evaluate and compare.
    Eval(Eval),
}

/// When an expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// At one moment.
    Instant(i64),
    /// At the steps of a range: start, end and step in milliseconds.
    Range(i64, i64, i64),
}

/// An evaluation and what it must give.
#[derive(Clone, Debug, PartialEq)]
pub struct Eval {
    /// The line it stands on, from 1.
    pub line: usize,
    /// When.
    pub times: Times,
    /// What.
    pub text: String,
    /// Demands on errors, notes and order.
    pub expects: Vec<Expect>,
    /// The series expected, with a value or gap per step.
    pub series: Vec<(Labels, Vec<Option<Point>>)>,
    /// The scalar expected.
    pub scalar: Option<f64>,
    /// The string expected.
    pub string: Option<String>,
    /// The times of the samples of a range vector: start, end and step.
    pub vector_times: Option<(i64, i64, i64)>,
}

/// What a demand is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectKind {
    /// The evaluation fails.
    Fail,
    /// There is a warning.
    Warn,
    /// There is an info.
    Info,
    /// There is no warning.
    NoWarn,
    /// There is no info.
    NoInfo,
    /// The series come in the order of the script.
    Ordered,
}

/// How a message is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageMatch {
    /// Any will do.
    Any,
    /// It is exactly this.
    Exact(String),
    /// This regular expression is found in it.
    Regex(String),
}

/// A demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// On what.
    pub kind: ExpectKind,
    /// With which message.
    pub message: MessageMatch,
}

/// The commands of a script, with their lines.
///
/// # Errors
/// The first line that is none.
pub fn parse(text: &str) -> Result<Vec<Command>, ScriptError> {
    let lines: Vec<&str> = text.lines().map(str::trim).map(without_comment).collect();
    let mut commands = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (line, head) = (at, lines[at]);
        at += 1;
        if head.is_empty() {
            continue;
        }
        let body_end =
            lines[at..].iter().position(|l| l.is_empty()).map_or(lines.len(), |n| at + n);
        let word = head.split_whitespace().next().unwrap_or("");
        let error = |line: usize| move |message| ScriptError { line: line + 1, message };
        match word {
            "clear" => commands.push(Command::Clear),
            "load" | "load_with_nhcb" => {
                let step_ms = parse_time(head[word.len()..].trim()).map_err(error(line))?;
                let mut load = Load::new(step_ms, word == "load_with_nhcb");
                for (idx, body) in lines[at..body_end].iter().enumerate() {
                    load.line(body).map_err(error(at + idx))?;
                }
                commands.push(load.finish(line + 1));
                at = body_end;
            }
            _ if word == "eval" || word.starts_with("eval_") => {
                let mut eval = parse_head(head, line + 1).map_err(error(line))?;
                for (idx, body) in lines[at..body_end].iter().enumerate() {
                    parse_body(body, &mut eval).map_err(error(at + idx))?;
                }
                commands.push(Command::Eval(eval));
                at = body_end;
            }
            _ => {
                let message = format!("unknown command {word:?}");
                return Err(ScriptError { line: line + 1, message });
            }
        }
    }
    Ok(commands)
}

fn without_comment(line: &str) -> &str {
    if line.starts_with('#') { "" } else { line }
}

/// Collects the lines of a `load`.
struct Load {
    step_ms: i64,
    series: Vec<(Labels, Vec<(i64, Point)>)>,
    starts: Vec<(Labels, Vec<(i64, i64)>)>,
    is_with_native: bool,
}

impl Load {
    fn new(step_ms: i64, is_with_native: bool) -> Load {
        Load { step_ms, series: Vec::new(), starts: Vec::new(), is_with_native }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some((labels, offsets)) = parse_starts(line)? {
            let times = (0i64..).map(|idx| idx * self.step_ms);
            let starts = times.zip(offsets);
            let starts = starts.filter_map(|(at, offset)| offset.map(|offset| (at, at + offset)));
            self.starts.push((labels, starts.collect()));
            return Ok(());
        }
        let (labels, items) = parse_line(line)?;
        let mut samples = Vec::new();
        for (idx, item) in items.into_iter().enumerate() {
            samples.extend(point(item).map(|point| (idx as i64 * self.step_ms, point)));
        }
        self.series.push((labels, samples));
        Ok(())
    }

    fn finish(self, line: usize) -> Command {
        Command::Load {
            series: self.series,
            starts: self.starts,
            is_with_native: self.is_with_native,
            line,
        }
    }
}

/// The sample at one place of a sequence, if there is one.
fn point(item: Item) -> Option<Point> {
    match item {
        Item::Value(value) => Some(Point::Number(value)),
        Item::Histogram(noted) => Some(Point::Histogram(noted)),
        Item::Omitted => None,
    }
}

/// `eval[_fail|_warn|_info|_ordered] (instant at T | range from A to B step S) EXPRESSION`.
fn parse_head(head: &str, line: usize) -> Result<Eval, String> {
    let (word, rest) = take_word(head);
    let kind = match word.strip_prefix("eval").unwrap_or("") {
        "" => None,
        "_fail" => Some(ExpectKind::Fail),
        "_warn" => Some(ExpectKind::Warn),
        "_info" => Some(ExpectKind::Info),
        "_ordered" => Some(ExpectKind::Ordered),
        _ => return Err(format!("unknown command {word:?}")),
    };
    let (form, rest) = take_word(rest);
    let (times, text) = match form {
        "instant" => {
            let (at, rest) = take_keyed(rest, "at")?;
            (Times::Instant(at), rest)
        }
        "range" => {
            let (start, rest) = take_keyed(rest, "from")?;
            let (end, rest) = take_keyed(rest, "to")?;
            let (step, rest) = take_keyed(rest, "step")?;
            (Times::Range(start, end, step), rest)
        }
        _ => return Err(format!("expected \"instant\" or \"range\", got {form:?}")),
    };
    let expects =
        kind.map(|kind| Expect { kind, message: MessageMatch::Any }).into_iter().collect();
    Ok(Eval {
        line,
        times,
        text: text.to_string(),
        expects,
        series: Vec::new(),
        scalar: None,
        string: None,
        vector_times: None,
    })
}

fn take_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// `key TIME` and what follows.
fn take_keyed<'a>(text: &'a str, key: &str) -> Result<(i64, &'a str), String> {
    let (word, rest) = take_word(text);
    if word != key {
        return Err(format!("expected {key:?}, got {word:?}"));
    }
    let (time, rest) = take_word(rest);
    Ok((parse_time(time)?, rest))
}

fn parse_body(line: &str, eval: &mut Eval) -> Result<(), String> {
    if let Some(rest) = line.strip_prefix("expect ") {
        return parse_expect(rest, eval);
    }
    for (prefix, is_regex) in [("expected_fail_message ", false), ("expected_fail_regexp ", true)] {
        if let Some(message) = line.strip_prefix(prefix) {
            let message = message.trim().to_string();
            let message =
                if is_regex { MessageMatch::Regex(message) } else { MessageMatch::Exact(message) };
            eval.expects.push(Expect { kind: ExpectKind::Fail, message });
            return Ok(());
        }
    }
    if let Some(number) = parse_number(line) {
        eval.scalar = Some(number);
        return Ok(());
    }
    let (labels, items) = parse_line(line)?;
    let values = items.into_iter().map(point).collect();
    eval.series.push((labels, values));
    Ok(())
}

fn parse_expect(text: &str, eval: &mut Eval) -> Result<(), String> {
    let (word, rest) = take_word(text);
    let kind = match word {
        "fail" => ExpectKind::Fail,
        "warn" => ExpectKind::Warn,
        "info" => ExpectKind::Info,
        "no_warn" => ExpectKind::NoWarn,
        "no_info" => ExpectKind::NoInfo,
        "ordered" => ExpectKind::Ordered,
        "string" => {
            let literal = promql::parse(rest).map_err(|e| e.to_string())?;
            let promql::Expr::String(literal) = literal else {
                return Err(format!("no string: {rest:?}"));
            };
            eval.string = Some(literal.value);
            return Ok(());
        }
        "range" => {
            let rest = rest.strip_prefix("vector").ok_or("expected \"vector\"")?;
            let (start, rest) = take_keyed(rest, "from")?;
            let (end, rest) = take_keyed(rest, "to")?;
            let (step, _) = take_keyed(rest, "step")?;
            eval.vector_times = Some((start, end, step));
            return Ok(());
        }
        _ => return Err(format!("unknown expectation {word:?}")),
    };
    let message = if let Some(message) = rest.strip_prefix("msg:") {
        MessageMatch::Exact(message.trim().to_string())
    } else if let Some(regex) = rest.strip_prefix("regex:") {
        MessageMatch::Regex(regex.trim().to_string())
    } else if rest.is_empty() {
        MessageMatch::Any
    } else {
        return Err(format!("expected \"msg:\" or \"regex:\", got {rest:?}"));
    };
    eval.expects.push(Expect { kind, message });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts() {
        let text = "load 10s\n  a 1 2\n\n# c\neval_fail instant at 1m a b\n\n\
                    eval range from 0 to 1m step 10s a\n expect warn msg: x y\n a 1 _ 2\n\nclear\n";
        assert_eq!(parse("clear\nnonsense 1").unwrap_err().line, 2);
        let commands = parse(text).unwrap();
        assert_eq!(commands.len(), 4);
        let Command::Load { series, .. } = &commands[0] else { panic!("a load") };
        let number = Point::Number;
        assert_eq!(series[0].1, [(0, number(1.0)), (10_000, number(2.0))]);
        let Command::Eval(eval) = &commands[2] else { panic!("an eval") };
        assert_eq!(eval.times, Times::Range(0, 60_000, 10_000));
        assert_eq!(eval.series[0].1, [Some(number(1.0)), None, Some(number(2.0))]);
        assert_eq!(eval.expects[0].message, MessageMatch::Exact("x y".to_string()));
    }
}
