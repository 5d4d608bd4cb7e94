//! The scripts of `testdata/promql`, the examples of the function table, and random expressions.

use engine::script::{Command, Runner, Subject, parse, scripts_in};
use engine::{MetricsQlOptions, NameRemoval, QueryOptions, StartTimestamps, fuzzing, instant};
use promql::Dialect;
use std::path::{Path, PathBuf};

mod over_a_store;

fn options() -> QueryOptions {
    QueryOptions {
        experimental_functions: true,
        start_timestamps: StartTimestamps::Used,
        ..QueryOptions::default()
    }
}

/// The scripts of a directory of `testdata`, with their paths.
fn scripts_of(directory: &str) -> Vec<(PathBuf, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(directory);
    scripts_in(&directory).expect("the scripts are there")
}

/// How many evaluations the scripts of a directory ask for.
fn count_of(directory: &str) -> usize {
    let count = |text: &str| -> usize {
        let commands = parse(text).expect("a script");
        commands.iter().filter(|command| matches!(command, Command::Eval(_))).count()
    };
    scripts_of(directory).iter().map(|(_, text)| count(text)).sum()
}

/// Runs all scripts of a directory; returns how many evaluations passed, which are all.
#[track_caller]
fn run_directory<S: Subject>(directory: &str, runner: &mut Runner<S>) -> usize {
    let (mut passed, mut failures) = (0, Vec::new());
    for (path, text) in scripts_of(directory) {
        let report =
            runner.run(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let told = report
            .failures()
            .map(|(line, text, outcome)| format!("{}:{line}: {text}: {outcome:?}", path.display()));
        failures.extend(told);
        passed += report.passed();
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(0 < passed, "no evaluation in {directory}");
    passed
}

#[test]
fn scripts() {
    run_directory("promql", &mut Runner::new(options()));
}

#[test]
fn scripts_with_late_name_removal() {
    let options = QueryOptions { name_removal: NameRemoval::Late, ..options() };
    run_directory("promql/late_names", &mut Runner::new(options));
}

#[test]
fn scripts_that_keep_names_over_time() {
    let options = QueryOptions { name_removal: NameRemoval::KeepOverTime, ..options() };
    run_directory("promql/kept_names", &mut Runner::new(options));
}

/// Answers that VictoriaMetrics gave.
#[test]
fn scripts_in_metricsql() {
    let metricsql = MetricsQlOptions { step_ms: 300_000, ..MetricsQlOptions::default() };
    let options = QueryOptions { dialect: Dialect::MetricsQl, metricsql, ..options() };
    run_directory("metricsql", &mut Runner::new(options));
}

#[test]
fn every_example_of_metricsql_gives_its_answer() {
    let metricsql = MetricsQlOptions { step_ms: 60_000, ..MetricsQlOptions::default() };
    let options = QueryOptions { dialect: Dialect::MetricsQl, metricsql, ..options() };
    check_examples(Dialect::MetricsQl, "25h", &options);
}

#[test]
fn every_example_gives_its_answer() {
    check_examples(Dialect::PromQl, "1h", &options());
}

fn check_examples(dialect: Dialect, at: &str, options: &QueryOptions) {
    for entry in promql::reference::entries(dialect) {
        let Some(answer) = entry.answer else { continue };
        let answer = answer.replace(", {", "\n  {");
        let script = format!("eval instant at {at} {}\n  {answer}\n", entry.example);
        let report = Runner::new(options.clone()).run(&script).expect("a script");
        let failures: Vec<_> = report.failures().collect();
        assert!(failures.is_empty(), "{failures:?}");
    }
}

/// Selectors of the source for random expressions.
const VECTORS: &[&str] = &[
    "a",
    "b",
    "c",
    "d",
    "e",
    "h",
    "h{x=\"3\"}",
    "h offset 1m",
    "{__name__=~\"h|e\"}",
    "nothing",
    "{x=\"1\"}",
    "a{x=\"1\"}",
    "a offset 1m",
    "a @ 120",
    "b @ end()",
    "c offset -1m",
    "vector(time())",
    "{__name__=~\"a|b\"}",
];

/// Seeded random expressions made of pieces that fit together more often than not.
#[test]
fn random_expressions() {
    const WINDOWS: &[&str] = &[
        "[1m]",
        "[5m]",
        "[2m:30s]",
        "[1m:]",
        "[1h:7s]",
        "[3m] offset 1m",
        "[2m] anchored",
        "[2m] smoothed",
    ];
    const SCALARS: &[&str] = &["1", "0", "-1", "2.5", "NaN", "Inf", "time()", "scalar(a)"];
    const OPERATORS: &[&str] = &[
        "+",
        "-",
        "*",
        "/",
        "%",
        "^",
        "atan2",
        "==",
        "!=",
        "> bool",
        "<",
        "and",
        "or",
        "unless",
        "</",
        ">/",
        "- on(x)",
        "+ fill(1)",
        "+ on(x)",
        "* on(x) group_left()",
        "/ ignoring(x) group_right(y)",
        "and on(x)",
    ];
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let mut random = Random { state: seed };
    let mut answered = 0;
    for round in 0..3_000 {
        let mut text = random.expression(3, VECTORS, WINDOWS, SCALARS, OPERATORS);
        if round % 10 == 0 && !text.is_empty() {
            let at = random.below(text.len());
            if text.is_char_boundary(at) {
                text.insert(at, '(');
            }
        }
        fuzzing::fuzz_evaluate(text.as_bytes());
        let source = fuzzing::sample_source();
        answered += usize::from(instant(&source, &text, 300_000, &options()).is_ok());
    }
    assert!(600 < answered, "too few expressions make sense: {answered}");
}

struct Random {
    state: u64,
}

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 33) as usize % bound
    }

    fn one<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// An instant vector expression, most of the time.
    fn expression(
        &mut self,
        depth: usize,
        vectors: &[&str],
        windows: &[&str],
        scalars: &[&str],
        operators: &[&str],
    ) -> String {
        if depth == 0 {
            return self.one(vectors).to_string();
        }
        let inner = |random: &mut Random| {
            random.expression(depth - 1, vectors, windows, scalars, operators)
        };
        match self.below(7) {
            0 => {
                let (left, right) = (inner(self), inner(self));
                format!("({left} {} {right})", self.one(operators))
            }
            1 => format!("({} {} {})", inner(self), self.one(operators), self.one(scalars)),
            2 => format!("({} {} {})", self.one(scalars), self.one(operators), inner(self)),
            3 => {
                let op = promql::AggregateOp::ALL[self.below(promql::AggregateOp::ALL.len())];
                let grouping = self.one(&["", " by (x)", " without (x)", " by (__name__, x)"]);
                let parameter = match op.parameter() {
                    Some(promql::ValueType::String) => "\"v\", ".to_string(),
                    Some(_) => format!("{}, ", self.one(scalars)),
                    None => String::new(),
                };
                format!("{}{grouping} ({parameter}{})", op.as_str(), inner(self))
            }
            4 => format!("-{}", inner(self)),
            _ => {
                let vector = inner(self);
                self.call(vector, windows, scalars)
            }
        }
    }

    /// A call of any function, with `vector` for its vectors.
    fn call(&mut self, vector: String, windows: &[&str], scalars: &[&str]) -> String {
        let function = &promql::FUNCTIONS[self.below(promql::FUNCTIONS.len())];
        let arguments: Vec<String> = function
            .arguments
            .iter()
            .map(|wanted| match wanted {
                promql::ValueType::Scalar => self.one(scalars).to_string(),
                promql::ValueType::String => format!("\"{}\"", self.one(&["x", "y", "(.*)", "$1"])),
                promql::ValueType::Vector => vector.clone(),
                promql::ValueType::Matrix => {
                    let window = self.one(windows);
                    let named = self.one(&["a", "h", "e", "h", "h{x=\"1\"}"]);
                    let subject = if window.contains(':') { vector.as_str() } else { named };
                    format!("{subject}{window}")
                }
            })
            .collect();
        format!("{}({})", function.name, arguments.join(", "))
    }
}
