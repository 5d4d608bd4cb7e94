//! Fuzzing that looks where it gets: builds the targets of `fuzz/` with libFuzzer and counters on
//! every edge of the code, runs each for a while, and keeps the inputs that reach something new.
//!
//! All inputs that were ever of use lie in `target/fuzz/corpus/`, the next run begins with them.
//! The fewest that reach every edge are kept in `fuzz/corpus/TARGET.pack`, for the next checkout and
//! for CI. Files in `fuzz/corpus/TARGET/` were written by hand and stay as they are.

use crate::process::command;
use anyhow::{Context, Result, bail, ensure};
use fuzz_pack::Input;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Counters on every edge, a table of their places, and what comparisons compare.
const RUSTFLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Profile and features of the build.
const BUILD: &[&str] =
    &["build", "--package", "quipu-fuzz", "--features", "guided", "--profile", "guided"];
/// The program, which is built for a named platform: only then are build scripts left without
/// counters, which they could not be linked with.
const PROGRAM: &str = "quipu-fuzz-guided";
/// Where it is told its target.
const TARGET_VARIABLE: &str = "QUIPU_FUZZ_TARGET";
/// Below the checkout: the build and all that need not be kept.
const SCRATCH: &str = "target/fuzz";
/// Below the checkout: a pack of inputs and perhaps a folder of others for each target.
const CORPUS: &str = "fuzz/corpus";
/// The folder of inputs that every target begins with.
const COMMON: &str = "common";
/// Seconds for each target where none are given.
const SECONDS: u64 = 60;
/// Seconds after which an input counts as one that hangs. Generous: other programs may have the
/// processor.
const INPUT_SECONDS_MAX: u64 = 30;
/// Memory at which an input counts as one that takes too much.
const MEMORY_MIB_MAX: u64 = 2048;
/// Inputs kept for a target.
const FILES_MAX: usize = 200;
/// Bytes of the inputs kept for a target; some 24 targets shall stay below 2 MB.
const CORPUS_SIZE_MAX: u64 = 80 << 10;
/// Between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// Lines of its output that a failed target shows.
const TOLD_LINES_MAX: usize = 12;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Request {
    seconds: u64,
    /// None stands for all.
    targets: Vec<String>,
}

/// Where a target's things lie.
struct Target<'a> {
    name: &'a str,
    program: &'a Path,
    input_size_max: &'a str,
    root: &'a Path,
}

/// What libFuzzer said of itself.
#[derive(Debug, Default, PartialEq)]
struct Progress {
    inputs: u64,
    /// Edges that the corpus reached before the first new input.
    edges_before: Option<u64>,
    edges: u64,
    /// Where it put an input that failed.
    failed_input: Option<String>,
}

/// What is kept, in numbers.
struct Kept {
    files: usize,
    size: u64,
    new: usize,
    /// Inputs that the bounds leave out.
    left_out: usize,
}

/// Builds, then runs every target that is asked for. Fails after the last when one has failed.
pub fn run(arguments: &[String]) -> Result<()> {
    let request = parse(arguments)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace above")?;
    let program = build(root)?;
    let listed = Command::new(&program).output().context("cannot start the fuzzer")?;
    ensure!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout)?;
    let (input_size_max, names) = listed.split_once('\n').context("a list of targets")?;
    let names: Vec<&str> = names.lines().collect();
    if let Some(wrong) = request.targets.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("no target {wrong}; there are: {}", names.join(", "));
    }
    let is_wanted =
        |name: &&str| request.targets.is_empty() || request.targets.iter().any(|one| one == name);
    let mut failures = Vec::new();
    for name in names.into_iter().filter(is_wanted) {
        let target = Target { name, program: &program, input_size_max, root };
        if let Err(failure) = target.run(request.seconds) {
            println!("{failure:#}");
            failures.push(name);
        }
    }
    ensure!(failures.is_empty(), "{} targets failed: {}", failures.len(), failures.join(", "));
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Request> {
    let mut request = Request { seconds: SECONDS, targets: Vec::new() };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                let seconds = arguments.next().context("--seconds needs a number")?;
                request.seconds =
                    seconds.parse().with_context(|| format!("--seconds {seconds}"))?;
                // For libFuzzer zero is no end at all.
                ensure!(0 < request.seconds, "--seconds 0: at least 1");
            }
            name if name.starts_with('-') => {
                bail!("{name}: usage: cargo xtask fuzz [--seconds N] [TARGET...]")
            }
            name => request.targets.push(name.to_string()),
        }
    }
    Ok(request)
}

/// Builds the program, with counters, into a folder that no other build shares.
fn build(root: &Path) -> Result<PathBuf> {
    let version = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let version = String::from_utf8(version.stdout)?;
    let platform = version.lines().find_map(|line| line.strip_prefix("host: "));
    let platform = platform.context("rustc names its platform")?;
    let mut arguments = BUILD.to_vec();
    arguments.extend(["--bin", PROGRAM, "--target", platform, "--target-dir", SCRATCH]);
    command("cargo", &arguments, &[("RUSTFLAGS", RUSTFLAGS)])?;
    Ok(root.join(SCRATCH).join(platform).join("guided").join(PROGRAM))
}

impl Target<'_> {
    fn run(&self, seconds: u64) -> Result<()> {
        println!("== {}", self.name);
        for folder in [self.common(), self.scratch("corpus"), self.scratch("failed")] {
            fs::create_dir_all(folder)?;
        }
        self.unpack()?;
        let progress = self.fuzz(seconds)?;
        let kept = self.minimise()?;
        println!(
            "   {}: {} inputs, edges {} -> {}; kept {} inputs of {} bytes, {} of them new",
            self.name,
            progress.inputs,
            progress.edges_before.unwrap_or(0),
            progress.edges,
            kept.files,
            kept.size,
            kept.new,
        );
        if 0 < kept.left_out {
            println!(
                "   {}: left out {} more that reach new edges: over {FILES_MAX} inputs or \
                 {CORPUS_SIZE_MAX} bytes",
                self.name, kept.left_out
            );
        }
        Ok(())
    }

    fn pack(&self) -> PathBuf {
        self.root.join(CORPUS).join(format!("{}.pack", self.name))
    }

    fn by_hand(&self) -> PathBuf {
        self.root.join(CORPUS).join(self.name)
    }

    /// The unpacked inputs of the pack, and copies of those written by hand.
    fn kept(&self) -> PathBuf {
        self.scratch("kept")
    }

    fn common(&self) -> PathBuf {
        self.root.join(CORPUS).join(COMMON)
    }

    fn scratch(&self, kind: &str) -> PathBuf {
        self.root.join(SCRATCH).join(kind).join(self.name)
    }

    /// The program with what every call of it needs.
    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env(TARGET_VARIABLE, self.name).current_dir(self.root);
        // What panicked is to stand beside what libFuzzer makes of it; a replay shows the calls.
        command.env("RUST_BACKTRACE", "0");
        command.arg(format!("-max_len={}", self.input_size_max));
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
        command.arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
        command.arg(format!("-artifact_prefix={}/", self.scratch("failed").display()));
        command
    }

    /// Makes the folder of kept inputs, which libFuzzer reads, from the pack and the files.
    fn unpack(&self) -> Result<()> {
        let kept = self.kept();
        recreate(&kept)?;
        for input in fuzz_pack::read(&self.pack())? {
            fs::write(kept.join(input.name), input.bytes)?;
        }
        if self.by_hand().exists() {
            for (_, name) in files(&self.by_hand())? {
                fs::copy(self.by_hand().join(&name), kept.join(&name))?;
            }
        }
        Ok(())
    }

    /// Grows inputs for a while. What is of use lands among those of earlier runs.
    fn fuzz(&self, seconds: u64) -> Result<Progress> {
        let mut command = self.command();
        command.args([format!("-max_total_time={seconds}"), "-print_final_stats=1".to_string()]);
        command.args([self.scratch("corpus"), self.kept(), self.common()]);
        let log_path = self.scratch("failed").with_extension("log");
        let (progress, status) = self.watch(command, &log_path)?;
        if status.success() {
            return Ok(progress);
        }
        let log = String::from_utf8_lossy(&fs::read(&log_path)?).into_owned();
        let told = tell(&log);
        let Some(input) = progress.failed_input else {
            bail!("{} ended without an input: {status}; {log_path:?}\n   {told}", self.name);
        };
        bail!(
            "{} failed: {status}\n   {told}\n   input: {input}\n   all it said: {}\n   \
             replay: cargo run -p quipu-fuzz -- --replay {input} {}",
            self.name,
            log_path.display(),
            self.name
        );
    }

    /// Runs the program, puts what it says into the log, and shows now and then how far it is.
    fn watch(&self, mut command: Command, log_path: &Path) -> Result<(Progress, ExitStatus)> {
        let mut log = fs::File::create(log_path)?;
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let said = BufReader::new(child.stderr.take().context("a pipe")?);
        let (mut progress, mut shown) = (Progress::default(), Instant::now());
        for line in said.split(b'\n') {
            let line = line?;
            log.write_all(&line)?;
            log.write_all(b"\n")?;
            progress.update(&String::from_utf8_lossy(&line));
            if PROGRESS_INTERVAL <= shown.elapsed() {
                println!("   {} inputs, {} edges", progress.inputs, progress.edges);
                shown = Instant::now();
            }
        }
        Ok((progress, child.wait()?))
    }

    /// Keeps the fewest inputs that reach all edges, beside those named by hand.
    fn minimise(&self) -> Result<Kept> {
        let merged = self.scratch("merged");
        recreate(&merged)?;
        let before = files(&self.kept())?;
        for (_, name) in before.iter().filter(|(_, name)| !is_found(name)) {
            fs::copy(self.kept().join(name), merged.join(name))?;
        }
        let mut command = self.command();
        // Without counters: an edge counts once, not anew for each number of passes.
        command.args(["-set_cover_merge=1", "-use_counters=0"]).arg(&merged);
        command.args([self.kept(), self.scratch("corpus"), self.common()]);
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (chosen, left_out) = choose(files(&merged)?);
        let found = chosen
            .iter()
            .filter(|(_, name)| is_found(name))
            .map(|(_, name)| Ok(Input { name: name.clone(), bytes: fs::read(merged.join(name))? }));
        fuzz_pack::write_if_changed(&self.pack(), &found.collect::<Result<Vec<_>>>()?)?;
        let names: BTreeSet<&String> = before.iter().map(|(_, name)| name).collect();
        Ok(Kept {
            files: chosen.len(),
            size: chosen.iter().map(|(size, _)| size).sum(),
            new: chosen.iter().filter(|(_, name)| !names.contains(name)).count(),
            left_out,
        })
    }
}

impl Progress {
    /// Reads a line such as `#1024 INITED cov: 331 ft: 400 corp: 12/90b exec/s: 0 rss: 40Mb`.
    fn update(&mut self, line: &str) {
        if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.failed_input = Some(path.trim().to_string());
        }
        let Some(rest) = line.strip_prefix('#') else { return };
        let mut words = rest.split_whitespace();
        let Some(inputs) = words.next().and_then(|word| word.parse().ok()) else { return };
        self.inputs = inputs;
        let is_first = words.next() == Some("INITED");
        let mut after = words.skip_while(|word| *word != "cov:").skip(1);
        let Some(edges) = after.next().and_then(|word| word.parse().ok()) else { return };
        self.edges = edges;
        if is_first {
            self.edges_before = Some(edges);
        }
    }
}

/// What a failed target said that matters: from its panic on, or else at the end.
fn tell(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let panic = lines.iter().position(|line| line.contains(" panicked at "));
    let start = panic.unwrap_or(lines.len().saturating_sub(TOLD_LINES_MAX));
    let end = lines.len().min(start + TOLD_LINES_MAX);
    lines[start..end].join("\n   ")
}

/// Makes an empty folder in place of what is there.
fn recreate(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))
}

/// Whether libFuzzer gave the name: a checksum of 160 bits.
fn is_found(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Sizes and names of a folder's files, the smallest first.
fn files(folder: &Path) -> Result<Vec<(u64, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.file_name().to_string_lossy().into_owned()));
    }
    files.sort();
    Ok(files)
}

/// Those that are kept, and how many are not. The ones named by hand stay always. Where there are
/// too many of the others the smallest go, which reach least; where they are too large, the
/// largest.
fn choose(files: Vec<(u64, String)>) -> (Vec<(u64, String)>, usize) {
    let all = files.len();
    let (mut found, mut chosen): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|(_, name)| is_found(name));
    let room = FILES_MAX.saturating_sub(chosen.len());
    found.sort();
    found.drain(..found.len().saturating_sub(room));
    let mut total: u64 = chosen.iter().map(|(size, _)| size).sum();
    for (size, name) in found {
        total += size;
        if CORPUS_SIZE_MAX < total {
            break;
        }
        chosen.push((size, name));
    }
    let left_out = all - chosen.len();
    (chosen, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: usize) -> String {
        format!("{number:040x}")
    }

    #[test]
    fn arguments() {
        let parsed =
            |text: &str| parse(&text.split_whitespace().map(String::from).collect::<Vec<_>>()).ok();
        let request = |seconds, targets: &[&str]| {
            Some(Request { seconds, targets: targets.iter().map(|one| one.to_string()).collect() })
        };
        assert_eq!(parsed(""), request(SECONDS, &[]));
        assert_eq!(parsed("a --seconds 5 b"), request(5, &["a", "b"]));
        for wrong in ["--seconds", "--seconds x", "--seconds 0", "--minutes 1"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn progress_is_read() {
        let mut progress = Progress::default();
        progress.update("INFO: seed corpus: files: 7 min: 1b max: 256b total: 600b rss: 40Mb");
        assert_eq!(progress, Progress::default());
        progress.update("#8\tINITED cov: 331 ft: 400 corp: 7/600b exec/s: 0 rss: 41Mb");
        progress.update("#96\tNEW    cov: 340 ft: 413 corp: 8/610b lim: 4 exec/s: 0 rss: 41Mb");
        progress.update("artifact_prefix='a/'; Test unit written to a/crash-01");
        let expected = Progress {
            inputs: 96,
            edges_before: Some(331),
            edges: 340,
            failed_input: Some("a/crash-01".to_string()),
        };
        assert_eq!(progress, expected);
    }

    #[test]
    fn a_panic_is_told_before_the_end() {
        let steps = "#7\tNEW cov: 1\n".repeat(20);
        let end = "\nSUMMARY: libFuzzer: deadly signal\n".repeat(20);
        let told = tell(&format!("{steps}thread 'main' panicked at a.rs:1:2:\nodd{end}"));
        assert!(told.starts_with("thread 'main' panicked at a.rs:1:2:\n   odd\n"), "{told}");
        assert_eq!(told.lines().count(), TOLD_LINES_MAX);
        assert_eq!(tell("#7\tNEW cov: 1\nkilled\n"), "#7\tNEW cov: 1\n   killed");
    }

    #[test]
    fn packs_and_files_by_hand_are_unpacked_together() {
        let root = tempfile::tempdir().unwrap();
        let target = Target {
            name: "a",
            program: Path::new("none"),
            input_size_max: "1",
            root: root.path(),
        };
        let names = || files(&target.kept()).unwrap().into_iter().map(|(_, name)| name);
        target.unpack().unwrap();
        assert_eq!(names().count(), 0);

        fs::create_dir_all(target.by_hand()).unwrap();
        fs::write(target.by_hand().join("operators"), "+-").unwrap();
        let found = Input { name: hash(1), bytes: b"1".to_vec() };
        fuzz_pack::write_if_changed(&target.pack(), &[found]).unwrap();
        fs::write(target.kept().join("of-an-earlier-run"), "").unwrap();
        target.unpack().unwrap();
        assert_eq!(names().collect::<Vec<_>>(), [hash(1), "operators".to_string()]);
    }

    #[test]
    fn a_run_adds_what_it_finds_to_the_pack_and_leaves_files_by_hand_alone() {
        let root = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fake_fuzzer.sh");
        let target =
            Target { name: "a", program: &program, input_size_max: "1", root: root.path() };
        fs::create_dir_all(target.by_hand()).unwrap();
        fs::write(target.by_hand().join("operators"), "+-").unwrap();
        let known = Input { name: hash(1), bytes: b"1".to_vec() };
        fuzz_pack::write_if_changed(&target.pack(), std::slice::from_ref(&known)).unwrap();

        target.run(1).unwrap();
        let found = Input { name: hash(255), bytes: b"found".to_vec() };
        assert_eq!(fuzz_pack::read(&target.pack()).unwrap(), [known, found]);
        assert_eq!(files(&target.by_hand()).unwrap(), [(2, "operators".to_string())]);

        let written = fs::metadata(target.pack()).unwrap().modified().unwrap();
        target.run(1).unwrap();
        assert_eq!(fs::metadata(target.pack()).unwrap().modified().unwrap(), written);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let many = (0..FILES_MAX + 7).map(|number| (number as u64, hash(number)));
        let (chosen, left_out) = choose(many.rev().collect());
        assert_eq!((chosen.len(), left_out), (FILES_MAX, 7));
        assert_eq!(chosen.iter().map(|(size, _)| *size).min(), Some(7));

        let (small, large) = ((10, hash(1)), (CORPUS_SIZE_MAX, hash(2)));
        assert_eq!(choose(vec![large.clone(), small.clone()]), (vec![small], 1));

        let by_hand = (CORPUS_SIZE_MAX + 1, "operators".to_string());
        assert_eq!(choose(vec![(1, hash(1)), by_hand.clone()]), (vec![by_hand], 1));
    }
}
