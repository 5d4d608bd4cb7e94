//! Random expressions, texts and templates compared with Go's own `regexp` package.
//!
//! Skipped without Go 1.25 or newer, whose names of Unicode classes are compared. `SEED=n` and
//! `REGEXPS=n` ask others, and more.

use anyhow::{Context, Result, ensure};
use re2::{ErrorCode, Expression, Limits};
use rng::Random;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const COUNT_DEFAULT: usize = 3_000;
const LIMITS: Limits = Limits::new(64 << 20);
/// Signs of the dialect. Pieces that are not valid alone make half of the expressions wrong.
const PIECES: &[&str] = &[
    "a",
    "b",
    "ab",
    "A",
    "k",
    "\u{212a}",
    "ß",
    "é",
    "ſ",
    "1",
    "_",
    " ",
    "\n",
    "-",
    ",",
    ".",
    ".*",
    ".+?",
    "*",
    "+",
    "?",
    "*?",
    "??",
    "{2}",
    "{1,3}",
    "{0,2}?",
    "{2,}",
    "{,2}",
    "{x}",
    "{01}",
    "{1001}",
    "{3,2}",
    "|",
    "||",
    "(",
    "(",
    ")",
    ")",
    "(?:",
    "(?i)",
    "(?i:",
    "(?-i)",
    "(?m)",
    "(?s)",
    "(?-s:",
    "(?U)",
    "(?im-s:",
    "(?x)",
    "(?=",
    "(?P<n>",
    "(?<m>",
    "(?P<1>",
    "(?P<>",
    "[",
    "[^",
    "]",
    "[]",
    "[a-c]",
    "[^a-c]",
    "[z-a]",
    "[a-]",
    "[-a]",
    "[+--]",
    "[--a]",
    "[a&&b]",
    "[[]",
    "[[:alpha:]]",
    "[[:^digit:]]",
    "[[:foo:]]",
    "[\\d-z]",
    "[a-\\x{e9}]",
    "[\\b]",
    "[\\pL1]",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    "\\b",
    "\\B",
    "\\A",
    "\\z",
    "\\Z",
    "\\pL",
    "\\PN",
    "\\p{Lu}",
    "\\P{Greek}",
    "\\p{^Lu}",
    "\\p{Alphabetic}",
    "\\p{Letter}",
    "\\pX",
    "\\Q",
    "\\E",
    "\\Qa.b\\E",
    "^",
    "$",
    "\\x41",
    "\\x{1F600}",
    "\\x{d800}",
    "\\x",
    "\\x{}",
    "\\101",
    "\\0",
    "\\1",
    "\\8",
    "\\n",
    "\\a",
    "\\v",
    "\\_",
    "\\-",
    "\\.",
    "\\q",
    "\\é",
    "\\C",
    "\\",
    "a**",
    "\\<",
    "&&",
];
const TEXT_PIECES: &[&str] = &[
    "a", "b", "c", "A", "B", "k", "K", "\u{212a}", "s", "ſ", "é", "É", "ß", "1", "٣", "α", "Σ",
    "σ", "ς", "_", "-", ".", " ", "\n", "\t", "{", "}", "[", "]", "&", "\u{a0}", "😀", "z",
];
const TEMPLATE_PIECES: &[&str] = &[
    "$", "$$", "$0", "$1", "${1}", "$n", "${m}", "${n", "$1é", "$10", "$01", "x", "}", "{", "${}",
    "${a-b}", "$_",
];

fn words(random: &mut Random, pieces: &[&str], most: u64) -> String {
    let count = random.below(most + 1);
    (0..count).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect()
}

fn questions(random: &mut Random, count: usize) -> Vec<Value> {
    let mut question = || {
        let pattern = words(random, PIECES, 6);
        let texts: Vec<String> = (0..6).map(|_| words(random, TEXT_PIECES, 6)).collect();
        json!({"pattern": pattern, "texts": texts, "template": words(random, TEMPLATE_PIECES, 4)})
    };
    (0..count).map(|_| question()).collect()
}

/// What this crate answers, in the form of the Go program.
fn answer(question: &Value) -> Result<Value> {
    let pattern = question["pattern"].as_str().context("a pattern")?;
    let regexp = Expression::parse(pattern, false).and_then(|parsed| parsed.compile(LIMITS));
    let regexp = match regexp {
        Ok(regexp) => regexp,
        Err(error) => {
            ensure!(error.code != ErrorCode::Large, "{pattern:?} is too large");
            return Ok(json!({"error": error.to_string(), "matches": null}));
        }
    };
    let template = question["template"].as_str().context("a template")?;
    let texts = question["texts"].as_array().context("texts")?;
    let matches = texts.iter().map(|text| {
        let Some(captures) = regexp.regex().captures(text.as_str().unwrap_or_default()) else {
            return json!({"index": null, "expanded": ""});
        };
        let ends = |at| {
            captures.get(at).map_or([-1, -1], |group| [group.start() as i64, group.end() as i64])
        };
        let index: Vec<i64> = (0..captures.len()).flat_map(ends).collect();
        let mut expanded = String::new();
        regexp.expand(template, &captures, &mut expanded);
        json!({"index": index, "expanded": expanded})
    });
    Ok(json!({"error": "", "matches": matches.collect::<Vec<Value>>()}))
}

fn has_go() -> bool {
    let Ok(output) = Command::new("go").arg("version").output() else { return false };
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let minor =
        version.split("go1.").nth(1).and_then(|rest| rest.split(['.', ' ']).next()?.parse().ok());
    minor.is_some_and(|minor: u32| 25 <= minor)
}

#[test]
fn random_expressions_match_as_in_go() -> Result<()> {
    if !has_go() {
        println!("skipped: needs Go 1.25 or newer");
        return Ok(());
    }
    let count = std::env::var("REGEXPS").map_or(Ok(COUNT_DEFAULT), |text| text.parse())?;
    let questions = questions(&mut Random::seeded(1), count);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/go-regexp");
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("oracle");
    let built =
        Command::new("go").args(["build", "-o"]).arg(&program).current_dir(&folder).status()?;
    ensure!(built.success(), "go build failed in {}", folder.display());
    let mut oracle = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let lines: String = questions.iter().map(|question| format!("{question}\n")).collect();
    let mut input = oracle.stdin.take().context("piped")?;
    let writer = std::thread::Builder::new().name("questions".to_string());
    let writer = writer.spawn(move || input.write_all(lines.as_bytes()))?;
    let output = oracle.wait_with_output()?;
    writer.join().expect("no panic")?;
    let text = String::from_utf8(output.stdout)?;
    let answers: Vec<&str> = text.lines().skip(1).collect();
    ensure!(answers.len() == count, "{} answers", answers.len());
    let (mut differences, mut valid) = (Vec::new(), 0);
    for (question, line) in questions.iter().zip(answers) {
        let right: Value = serde_json::from_str(line)?;
        let ours = answer(question)?;
        valid += usize::from(right["error"] == "");
        if right != ours {
            differences.push(format!("{question}\n  Go    {right}\n  Quipu {ours}"));
        }
    }
    println!("{count} expressions, {valid} valid, {} differences", differences.len());
    ensure!(count / 4 < valid, "only {valid} of {count} expressions are valid");
    ensure!(differences.is_empty(), "{}", differences[..differences.len().min(20)].join("\n"));
    Ok(())
}
