//! kill -9 under load: every acknowledged sample is there afterwards, none that was not sent.
//!
//! `soak crash` (`tests/soak`) does the same for longer and with more writers.

use anyhow::{Context, Result, ensure};
use e2e::launch::quipu;
use e2e::{Client, Export, Launch, Server};
use rng::Random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::scope;

const ROUNDS: u64 = 5;
const WRITERS: u64 = 3;
const LINES_PER_REQUEST: u64 = 50;
const HOSTS: u64 = 5;
const START_MILLIS: u64 = 1_700_000_000_000;

/// What one writer knows: everything below `acknowledged` is durable, below `sent` may be there.
#[derive(Clone, Copy, Default)]
struct Progress {
    acknowledged: u64,
    sent: u64,
}

/// The sample with that number: all of it follows from the number.
fn line(writer: u64, number: u64) -> String {
    let (host, millis) = (number % HOSTS, START_MILLIS + number);
    // Half of the samples are in the months before: several partitions are open at a time.
    let millis = if number.is_multiple_of(2) { millis } else { millis - 40 * 86_400_000 };
    format!("load,writer=w{writer},host=h{host} v={} {millis}\n", value(writer, number))
}

fn value(writer: u64, number: u64) -> u64 {
    number * 1000 + writer
}

/// Writes until the server is gone.
fn write(authority: &str, writer: u64, progress: &mut Progress, acknowledged: &AtomicU64) {
    let mut client = Client::new(authority);
    loop {
        // What was sent and not acknowledged is sent again: the same samples at the same times.
        let start = progress.acknowledged;
        let end = start + LINES_PER_REQUEST;
        let body: String = (start..end).map(|number| line(writer, number)).collect();
        progress.sent = progress.sent.max(end);
        match client.post("/write?precision=ms", &[], body.as_bytes()) {
            Ok(answer) if answer.status == 204 => {
                progress.acknowledged = end;
                acknowledged.fetch_add(1, Relaxed);
            }
            Ok(answer) => panic!("{}", answer.excerpt()),
            Err(_) => return,
        }
    }
}

fn check(server: &Server, progress: &[Progress]) -> Result<()> {
    let Export(series) = server.export("load_v")?;
    let mut found = vec![BTreeMap::new(); progress.len()];
    for (labels, samples) in &series {
        let writer = (0..WRITERS).find(|writer| labels.contains(&format!("writer=\"w{writer}\"")));
        let writer = writer.with_context(|| labels.clone())? as usize;
        for (_, text) in samples {
            let number = text.parse::<u64>()? / 1000;
            let expected = line(writer as u64, number);
            ensure!(expected.contains(&format!("v={text} ")), "{labels}: {text} was never sent");
            found[writer].insert(number, ());
        }
    }
    for (writer, (found, progress)) in found.iter().zip(progress).enumerate() {
        let missing = (0..progress.acknowledged).find(|number| !found.contains_key(number));
        ensure!(
            missing.is_none(),
            "writer {writer}: sample {missing:?} was acknowledged and is lost"
        );
        let last = found.keys().next_back().copied().unwrap_or(0);
        ensure!(last <= progress.sent, "writer {writer}: {last} was never sent");
    }
    Ok(())
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_appears_when_the_process_is_killed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    // A small log makes flushes part of the load.
    let launch = Launch::new(directory.path()).flag("wal-size", "1MiB").flag("head-size", "8MiB");
    let mut random = Random::seeded(9);
    let mut progress = [Progress::default(); WRITERS as usize];
    for round in 0..ROUNDS {
        let server = launch.start()?;
        check(&server, &progress).with_context(|| format!("round {round}"))?;
        let (authority, acknowledged) = (server.authority().to_string(), AtomicU64::new(0));
        let requests = 300 + random.below(900);
        scope(|threads| {
            for (writer, progress) in progress.iter_mut().enumerate() {
                let (authority, acknowledged) = (&authority, &acknowledged);
                threads.spawn(move || write(authority, writer as u64, progress, acknowledged));
            }
            while acknowledged.load(Relaxed) < requests {
                std::thread::yield_now();
            }
            server.kill()
        })?;
        let data_dir = format!("--data-dir={}", directory.path().display());
        let verify = quipu(&["verify", &data_dir])?.output()?;
        let text = String::from_utf8_lossy(&verify.stdout);
        ensure!(verify.status.success(), "round {round}: {text}{:?}", verify.stderr);
    }
    let server = launch.start()?;
    check(&server, &progress)?;
    println!("acknowledged: {:?}", progress.map(|progress| progress.acknowledged));
    server.stop()
}
