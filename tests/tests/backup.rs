//! `quipu backup` against the real binary: samples, keys and tables go out under load and come back
//! whole, the second time only what changed is sent, and what is rotten or half done is said to be.

use anyhow::{Context, Result, ensure};
use e2e::{Export, Launch, Psql, RedisClient, Server, launch, postgres};
use rng::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;
/// What the server deletes once a backup is made.
const SNAPSHOTS: &str = "/snapshot/list";

/// What a command printed, and whether all went well.
pub struct Said {
    pub out: String,
    pub error: String,
    pub is_ok: bool,
}

/// Runs `quipu backup`.
pub fn backup(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Said> {
    let mut command = launch::quipu(&[&["backup"], arguments].concat())?;
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    let output = command.envs(environment.iter().copied()).output()?;
    Ok(Said {
        out: String::from_utf8(output.stdout)?,
        error: String::from_utf8(output.stderr)?,
        is_ok: output.status.success(),
    })
}

/// Runs it where all must go well; returns what it printed.
fn must(arguments: &[&str]) -> Result<String> {
    let said = backup(arguments, &[])?;
    ensure!(said.is_ok, "{arguments:?}: {}{}", said.out, said.error);
    Ok(said.out)
}

/// Runs it where it must refuse; returns what it said.
fn refusal(arguments: &[&str]) -> Result<String> {
    let said = backup(arguments, &[])?;
    ensure!(!said.is_ok, "{arguments:?} went well: {}", said.out);
    Ok(said.out + &said.error)
}

fn with_doors(directory: &Path) -> Launch {
    postgres::launch(directory).flag("redis-listen", "127.0.0.1:0")
}

/// A server with three doors, a directory for its data and one beside for backups.
struct Site {
    root: TempDir,
    server: Server,
}

impl Site {
    fn new() -> Result<Site> {
        let root = tempfile::tempdir()?;
        let server = with_doors(&root.path().join("data")).start()?;
        Ok(Site { root, server })
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }

    /// Many samples, a key of each type, a table.
    fn fill(&self) -> Result<()> {
        let mut random = Random::seeded(7);
        for host in 0..20 {
            let mut line = |second: i64| {
                format!("early,host=h{host} v={} {}\n", random.next() >> 24, NOON + second)
            };
            let body: String = (0..3_000).map(&mut line).collect();
            self.server.write("/write?precision=s", body)?;
        }
        let mut redis = RedisClient::of(&self.server)?;
        for line in [
            "SET greeting hello",
            "RPUSH list a b c",
            "HSET hash field value",
            "ZADD ranks 1 one 2 two",
            "SET passing soon EX 100000",
        ] {
            redis.must(line)?;
        }
        let statements = [
            "CREATE TABLE hosts (id int PRIMARY KEY, name text NOT NULL)",
            "INSERT INTO hosts SELECT n, 'host ' || n FROM generate_series(1, 500) AS s(n)",
        ];
        Psql::of(&self.server)?.ask(&statements, "")?;
        self.server.post("/internal/force_flush", "")?;
        Ok(())
    }

    fn create(&self) -> Result<String> {
        let (data, place) = (self.path("data"), self.path("place"));
        let url = self.server.url();
        must(&["create", "--url", url, "--data-dir", &data, "--to", &place])
    }

    /// All backups, oldest first.
    fn backups(&self) -> Result<Vec<Value>> {
        let all: Value =
            serde_json::from_str(&must(&["list", "--json", "--to", &self.path("place")])?)?;
        Ok(all.as_array().context("an array")?.clone())
    }

    /// A mark of somebody on another machine, who was killed an hour ago.
    fn leave_mark(&self, work: &str, text: &str) -> Result<()> {
        let marks = self.root.path().join("place/marks");
        std::fs::create_dir_all(&marks)?;
        let mark = marks.join(format!("1.{work}"));
        std::fs::write(&mark, text)?;
        let long_ago = SystemTime::now() - Duration::from_secs(3_600);
        Ok(std::fs::File::options().write(true).open(&mark)?.set_modified(long_ago)?)
    }

    fn blobs(&self) -> Result<Vec<PathBuf>> {
        files(&self.root.path().join("place/blobs"))
    }
}

/// All files below a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn number(backup: &Value, name: &str) -> Result<u64> {
    backup[name].as_u64().with_context(|| format!("no {name} in {backup}"))
}

/// What three doors answer.
#[derive(Debug, PartialEq)]
struct Answers {
    samples: Export,
    keys: BTreeMap<String, String>,
    rows: String,
}

fn answers(server: &Server) -> Result<Answers> {
    let samples = server.export("{__name__!=''}")?;
    ensure!(60_000 <= samples.len(), "{} samples", samples.len());
    let keys = RedisClient::of(server)?.contents()?;
    ensure!(5 <= keys.len(), "{keys:?}");
    let rows = Psql::of(server)?.ask(&["SELECT * FROM hosts ORDER BY id"], "")?;
    ensure!(500 <= rows.lines().count(), "{rows}");
    Ok(Answers { samples, keys, rows })
}

/// Writes at all doors until it is told to stop; says what was acknowledged so far.
fn load(server: &Server, written: &AtomicU64, is_over: &AtomicBool) -> Result<()> {
    let (mut redis, psql) = (RedisClient::of(server)?, Psql::of(server)?);
    for number in 1.. {
        server.write("/write?precision=s", format!("load v={number} {}\n", NOON + number))?;
        redis.must(&format!("SET load:{number} {number}"))?;
        psql.ask(&[&format!("INSERT INTO hosts VALUES ({}, 'load')", 1_000 + number)], "")?;
        written.store(number.unsigned_abs(), Ordering::SeqCst);
        if is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

/// What `load` wrote, as a server has it: every number from 1 on, at each door.
fn loaded(server: &Server) -> Result<[u64; 3]> {
    let samples = server.export("load_v")?.len();
    let mut keys = RedisClient::of(server)?.contents()?;
    keys.retain(|key, _| key.contains("load:"));
    let rows = Psql::of(server)?.ask(&["SELECT count(*) FROM hosts WHERE name = 'load'"], "")?;
    Ok([samples as u64, keys.len() as u64, rows.parse()?])
}

#[test]
fn a_backup_under_load_comes_back_whole_and_the_second_is_small() -> Result<()> {
    let site = Site::new()?;
    site.fill()?;
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let before = std::thread::scope(|scope| -> Result<u64> {
        let writer = scope.spawn(|| load(&site.server, &written, &is_over));
        e2e::poll("writes", Duration::from_secs(60), || {
            ensure!(3 <= written.load(Ordering::SeqCst), "not yet");
            Ok(())
        })?;
        let before = written.load(Ordering::SeqCst);
        let made = site.create();
        is_over.store(true, Ordering::SeqCst);
        writer.join().expect("no panic")?;
        made?;
        Ok(before)
    })?;
    let expected = answers(&site.server)?;
    site.create()?;
    assert_eq!(site.server.get(SNAPSHOTS)?.json()?["snapshots"], Value::Array(vec![]));
    let all = site.backups()?;
    let [first, second] = all.as_slice() else { panic!("{all:?}") };
    let blobs = site.blobs()?.len() as u64;
    assert_eq!(number(first, "sentBlobs")? + number(second, "sentBlobs")?, blobs, "{all:?}");
    assert!(number(second, "sentBlobs")? < number(first, "sentBlobs")?, "{all:?}");
    assert!(number(second, "sentBytes")? * 4 < number(second, "size")?, "{all:?}");
    must(&["verify", "--to", &site.path("place")])?;
    let Site { root, server } = site;
    server.kill()?;
    let path = |name: &str| root.path().join(name).display().to_string();
    // The newest is of the moment after the last write.
    must(&["restore", "latest", "--from", &path("place"), "--data-dir", &path("newest")])?;
    let server = with_doors(&root.path().join("newest")).start()?;
    assert_eq!(answers(&server)?, expected);
    server.stop()?;
    let verified = launch::quipu(&["verify", "--data-dir", &path("newest")])?.output()?;
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    // The first has all that was written before, and no half of what came meanwhile.
    let id = first["backup"].as_str().context("a name")?;
    must(&["restore", id, "--from", &path("place"), "--data-dir", &path("first")])?;
    let server = with_doors(&root.path().join("first")).start()?;
    for (number, door) in loaded(&server)?.into_iter().zip(["HTTP", "Redis", "PostgreSQL"]) {
        assert!(before <= number, "{door} has {number} of {before}");
        assert!(number <= written.load(Ordering::SeqCst) + 1, "{door} has {number}");
    }
    server.stop()
}

#[test]
fn what_is_rotten_or_missing_is_named_and_a_half_restored_directory_does_not_open() -> Result<()> {
    let site = Site::new()?;
    site.fill()?;
    site.create()?;
    let (place, data) = (site.path("place"), site.path("new"));
    let blobs = site.blobs()?;
    let blob = blobs.iter().max_by_key(|path| path.metadata().map_or(0, |found| found.len()));
    let blob = blob.context("blobs")?;
    let name = blob.file_name().and_then(|name| name.to_str()).context("a name")?;
    let good = std::fs::read(blob)?;
    let mut rotten = good.clone();
    rotten[good.len() / 2] ^= 1;
    std::fs::write(blob, &rotten)?;
    let restore = ["restore", "--from", &place, "--data-dir", &data];
    for arguments in [&["verify", "--to", &place][..], &restore] {
        let said = refusal(arguments)?;
        assert!(said.contains(name) && said.contains("is rotten"), "{said}");
    }
    let refused = with_doors(Path::new(&data)).refusal()?;
    assert!(refused.contains("half restored (backup "), "{refused}");
    assert!(refused.contains("run the same quipu backup restore again"), "{refused}");
    std::fs::remove_file(blob)?;
    for arguments in [&["verify", "--quick", "--to", &place][..], &restore] {
        let said = refusal(arguments)?;
        assert!(said.contains(name) && said.contains("is missing"), "{said}");
    }
    // The next backup sends it again: the server still has its bytes.
    site.create()?;
    assert_eq!(std::fs::read(blob)?, good);
    let first = site.backups()?[0]["backup"].as_str().context("a name")?.to_owned();
    let said = refusal(&restore)?;
    assert!(said.contains("go on with that one"), "{said}");
    let on = ["restore", &first, "--from", &place, "--data-dir", &data];
    let dry = must(&[&on[..], &["--dry-run"]].concat())?;
    assert!(dry.contains("would go on with it in"), "{dry}");
    must(&on)?;
    let server = with_doors(Path::new(&data)).start()?;
    assert_eq!(answers(&server)?, answers(&site.server)?);
    server.stop()?;
    let said = refusal(&on)?;
    assert!(said.contains("is not empty"), "{said}");
    Ok(())
}

#[test]
fn a_backup_that_failed_is_none_and_goes_on() -> Result<()> {
    let site = Site::new()?;
    site.fill()?;
    let place = site.root.path().join("place/blobs");
    std::fs::create_dir_all(&place)?;
    std::fs::write(site.root.path().join("place/FORMAT"), "quipu backups 1\n")?;
    // Where folders for blobs should be there are files.
    let in_the_way: Vec<PathBuf> =
        (0x80..0x100).map(|digits| place.join(format!("{digits:02x}"))).collect();
    in_the_way.iter().try_for_each(|path| std::fs::write(path, ""))?;
    let (data, to) = (site.path("data"), site.path("place"));
    let create = ["create", "--url", site.server.url(), "--data-dir", &data, "--to", &to];
    let said = refusal(&create)?;
    assert!(said.contains("no backup was made; run again, it goes on from here"), "{said}");
    assert_eq!(site.backups()?.len(), 0);
    assert_eq!(site.server.get(SNAPSHOTS)?.json()?["snapshots"], Value::Array(vec![]));
    in_the_way.iter().try_for_each(std::fs::remove_file)?;
    let there = site.blobs()?.len() as u64;
    // One that was killed left its snapshot, and a mark that nobody puts again.
    let killed = site.server.post("/snapshot/create", "")?.json()?;
    let killed = killed["snapshot"].as_str().context("a name")?;
    // And another, killed before it heard how its snapshot is called.
    site.server.post("/snapshot/create?ending=00c0ffee", "")?.json()?;
    let snapshots = format!("snapshot {killed}\nsnapshot 00c0ffee\n");
    site.leave_mark("create", &format!("process elsewhere 1\n{snapshots}"))?;
    site.create()?;
    assert_eq!(site.server.get(SNAPSHOTS)?.json()?["snapshots"], Value::Array(vec![]));
    assert_eq!(files(&site.root.path().join("place/marks"))?, Vec::<PathBuf>::new());
    let all = site.backups()?;
    assert_eq!(number(&all[0], "sentBlobs")? + there, site.blobs()?.len() as u64, "{all:?}");
    let elsewhere = site.path("elsewhere");
    let wrong = ["create", "--url", site.server.url(), "--data-dir", &elsewhere, "--to", &to];
    let said = refusal(&wrong)?;
    assert!(said.contains("say --data-dir as the server has it"), "{said}");
    assert_eq!(site.server.get(SNAPSHOTS)?.json()?["snapshots"], Value::Array(vec![]));
    Ok(())
}

#[test]
fn prune_removes_what_no_backup_needs_and_waits_for_none() -> Result<()> {
    let site = Site::new()?;
    site.fill()?;
    let to = site.path("place");
    for number in 1..=3 {
        let mut redis = RedisClient::of(&site.server)?;
        redis.must(&format!("SET number {number}"))?;
        site.create()?;
    }
    let before = site.blobs()?.len();
    // One that was being written when a run was killed goes; a file of somebody else stays.
    let hash = "ab".repeat(32);
    let stray = site.root.path().join(format!("place/blobs/ab/{hash}.new-0123456789abcdef"));
    let other = site.root.path().join("place/blobs/mine.txt");
    std::fs::create_dir_all(stray.parent().context("a folder")?)?;
    std::fs::write(&stray, "half")?;
    std::fs::write(&other, "mine")?;
    // Somebody elsewhere makes a backup.
    let marks = site.root.path().join("place/marks");
    std::fs::create_dir_all(&marks)?;
    let mark = marks.join("1.create");
    std::fs::write(&mark, "process elsewhere 1\n")?;
    let prune = ["prune", "--keep", "1", "--to", &to];
    let said = refusal(&prune)?;
    assert!(said.contains("quipu backup create is at work"), "{said}");
    // It was killed long ago.
    site.leave_mark("create", "process elsewhere 1\n")?;
    let dry = must(&[&prune[..], &["--dry-run"]].concat())?;
    assert!(dry.contains("would remove 2 backups"), "{dry}");
    assert_eq!((site.backups()?.len(), site.blobs()?.len()), (3, before + 2));
    let said = must(&prune)?;
    assert!(said.contains("removed 2 backups"), "{said}");
    assert_eq!(site.backups()?.len(), 1);
    assert!(site.blobs()?.len() < before && !stray.exists() && other.exists());
    std::fs::remove_file(&other)?;
    assert_eq!(files(&marks)?, Vec::<PathBuf>::new());
    must(&["verify", "--to", &to])?;
    let said = refusal(&["prune", "--to", &to])?;
    assert!(said.contains("say --keep N or --keep-days N"), "{said}");
    must(&["restore", "--from", &to, "--data-dir", &site.path("new")])?;
    let server = with_doors(&site.root.path().join("new")).start()?;
    assert_eq!(RedisClient::of(&server)?.must("GET number")?.text(), "3");
    assert_eq!(answers(&server)?, answers(&site.server)?);
    Ok(())
}
