//! Replicas apply what their primary decided by its clock; nothing expires by their own.

use crate::rig::{DATA, DATABASES, Map, Rig, encode};
use kv::credentials::REPLICA_OF;
use kv::keyspace::DumpFormat;
use kv::primary::{PrimaryRecord, ReplicaState};
use kv::replicate::field_expiry;
use kv::value::Hash;
use kv::{Call, Discard, Mode, Value};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use vfs::{SimVfs, Vfs};

const START_MS: i64 = 1_700_000_000_000;

pub fn disk() -> SimVfs {
    let disk = SimVfs::new(1);
    disk.set_now(START_MS * 1_000_000);
    disk
}

/// Opens keys as those of a replica.
pub fn open_replica(disk: &SimVfs) -> Rig {
    let rig = Rig::open(disk).expect("a good disk");
    rig.kv.write_beside(REPLICA_OF, b"primary 6379 whole\n").expect("a good disk");
    rig.kv.lock().leaves_expired = true;
    rig
}

/// A replica whose field `a` of the hash `h`, and string `k`, expire soon; field `b` does not.
fn open_replica_of_expiring_keys(disk: &SimVfs) -> Rig {
    let rig = open_replica(disk);
    apply_line(&rig, "hset h a 1 b 2");
    apply_line(&rig, &format!("hpexpireat h {} fields 1 a", at(400)));
    apply_line(&rig, &format!("set k x pxat {}", at(400)));
    rig
}

/// Applies a command of the primary.
pub fn apply(rig: &Rig, db: u8, words: &[&[u8]]) {
    let mut keys = rig.kv.lock();
    keys.set_now(rig.kv.now_ms());
    keys.sees_expired = true;
    let commands = field_expiry::commands(words).unwrap_or_else(|| vec![words.to_vec()]);
    for words in commands {
        let command = kv::commands::find(words[0]).expect("a command");
        let done = Call::run(&mut keys, db, command, &words, &mut Discard, Mode::Client);
        assert!(!done.is_error, "{:?}", String::from_utf8_lossy(&words.join(&b' ')));
    }
    keys.sees_expired = false;
    rig.kv.commit(&mut keys).expect("a good disk");
}

fn apply_line(rig: &Rig, line: &str) {
    apply(rig, 0, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
}

/// A time after the start, in digits.
fn at(ms: i64) -> String {
    (START_MS + ms).to_string()
}

/// Whether a client of the replica finds a key. Looking changes nothing.
fn is_found(rig: &Rig, key: &str) -> bool {
    let mut keys = rig.kv.lock();
    keys.set_now(rig.kv.now_ms());
    let is_found = keys.exists(0, key.as_bytes()).expect("a good disk");
    assert!(rig.kv.commit(&mut keys).expect("a good disk").is_none());
    is_found
}

/// The fields of a hash that a client of the replica finds.
fn fields_found(rig: &Rig, key: &str) -> Vec<String> {
    let mut keys = rig.kv.lock();
    keys.set_now(rig.kv.now_ms());
    let hash = keys.get::<Hash>(0, key.as_bytes()).expect("a hash");
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let mut fields: Vec<String> =
        hash.into_iter().flat_map(Hash::iter).map(|(field, _)| text(field)).collect();
    fields.sort();
    assert!(rig.kv.commit(&mut keys).expect("a good disk").is_none());
    fields
}

fn advance(disk: &SimVfs, ms: u64) {
    disk.advance(ms * 1_000_000);
}

#[test]
fn late_commands_of_the_primary_find_what_expired_here_meanwhile() {
    let disk = disk();
    let rig = open_replica(&disk);
    let payload = kv::rdb::dump(&Value::Str(kv::value::Str::new(b"x"))).expect("a string");
    for key in ["persisted", "prolonged", "appended", "read", "restored"] {
        apply_line(&rig, &format!("set {key} x"));
    }
    advance(&disk, 5_000);
    // The primary sent these in its first second: by the replica's clock all these times are past.
    for key in ["persisted", "prolonged", "appended", "read"] {
        apply_line(&rig, &format!("pexpireat {key} {}", at(400)));
        assert!(!is_found(&rig, key), "{key} has expired for clients");
    }
    apply_line(&rig, &format!("set set x pxat {}", at(400)));
    for key in ["restored", "new"] {
        let time = at(400);
        let words = [b"restore", key.as_bytes(), time.as_bytes(), &payload, b"replace", b"absttl"];
        apply(&rig, 0, &words);
    }
    rig.kv.keep().expect("a good disk");
    apply_line(&rig, "persist persisted");
    apply_line(&rig, "persist set");
    apply_line(&rig, "persist restored");
    apply_line(&rig, "persist new");
    apply_line(&rig, &format!("pexpireat prolonged {}", at(60_000)));
    apply_line(&rig, "append appended y");
    apply_line(&rig, "getex read persist");
    for key in ["persisted", "set", "restored", "new", "prolonged", "read"] {
        assert!(is_found(&rig, key), "{key}");
    }
    assert!(!is_found(&rig, "appended"));
    apply_line(&rig, "persist appended");
    assert!(is_found(&rig, "appended"));
}

#[test]
fn fields_are_hidden_from_clients_and_stay_for_the_primary() {
    let disk = disk();
    let rig = open_replica(&disk);
    apply_line(&rig, "hset h a 1 b 2 c 3");
    advance(&disk, 5_000);
    apply_line(&rig, &format!("hpexpireat h {} fields 2 a b", at(400)));
    apply_line(&rig, &format!("hsetex h pxat {} fields 1 d 4", at(500)));
    assert_eq!(fields_found(&rig, "h"), ["c"]);
    apply_line(&rig, "hincrby h a 5");
    assert_eq!(fields_found(&rig, "h"), ["c"]);
    apply_line(&rig, &format!("hgetex h pxat {} fields 1 c", at(300)));
    assert!(!is_found(&rig, "h"), "all its fields have expired");
    rig.kv.keep().expect("a good disk");
    apply_line(&rig, "hpersist h fields 4 a b c d");
    assert_eq!(fields_found(&rig, "h"), ["a", "b", "c", "d"]);
    let mut keys = rig.kv.lock();
    let hash = keys.get::<Hash>(0, b"h").expect("a hash").expect("there");
    assert_eq!(hash.get(b"a"), Some(b"6".as_slice()));
    assert_eq!(hash.expiry_of(b"a"), None);
}

#[test]
fn hidden_fields_outlive_a_clock_that_goes_back_and_a_restart() {
    let disk = disk();
    let rig = open_replica_of_expiring_keys(&disk);
    advance(&disk, 5_000);
    assert_eq!(fields_found(&rig, "h"), ["b"]);
    disk.set_now(START_MS * 1_000_000);
    apply_line(&rig, "hincrby h a 5");
    assert_eq!(fields_found(&rig, "h"), ["a", "b"]);
    advance(&disk, 5_000);
    assert_eq!(fields_found(&rig, "h"), ["b"]);
    rig.kv.keep().expect("a good disk");
    rig.close().expect("a good disk");

    let rig = Rig::open(&disk).expect("a good disk");
    rig.kv.keep().expect("a good disk");
    assert_eq!(fields_found(&rig, "h"), ["b"]);
    apply_line(&rig, "hpersist h fields 1 a");
    apply_line(&rig, "persist k");
    assert_eq!(fields_found(&rig, "h"), ["a", "b"]);
    assert!(is_found(&rig, "k"));
}

#[test]
fn a_promoted_replica_expires_what_was_due() {
    let disk = disk();
    let rig = open_replica_of_expiring_keys(&disk);
    apply_line(&rig, &format!("set later x pxat {}", at(60_000)));
    advance(&disk, 5_000);
    assert_eq!(fields_found(&rig, "h"), ["b"]);
    rig.kv.keep().expect("a good disk");
    assert_eq!(rig.kv.lock().len(0), 3);
    rig.kv.lock().leaves_expired = false;
    rig.kv.keep().expect("a good disk");
    let map = stored(&rig);
    assert_eq!(map.len(), 2, "{map:?}");
    assert_eq!(fields_found(&rig, "h"), ["b"]);
}

#[test]
fn a_client_that_may_write_to_a_replica_replaces_what_expired() {
    let disk = disk();
    let rig = open_replica(&disk);
    apply_line(&rig, &format!("set k x pxat {}", at(400)));
    advance(&disk, 5_000);
    rig.kv.lock().is_writing = true;
    rig.run(0, &[b"incr", b"k"]).expect("a good disk");
    rig.kv.lock().is_writing = false;
    assert_eq!(rig.kv.lock().len(0), 1);
    assert!(is_found(&rig, "k"));
}

#[test]
fn a_replica_passes_on_what_has_expired_here() {
    let disk = disk();
    let rig = open_replica_of_expiring_keys(&disk);
    advance(&disk, 5_000);
    assert_eq!(fields_found(&rig, "h"), ["b"]);
    for (format, until) in [(DumpFormat::Newest, at(400)), (REDIS_7, "0".to_owned())] {
        let mut keys = rig.kv.lock();
        keys.set_now(rig.kv.now_ms());
        assert!(keys.begin_dump(format, &[], &[]));
        let mut bytes = Vec::new();
        loop {
            let piece = keys.dump_some(1 << 20).expect("a good disk");
            bytes.extend_from_slice(&piece.bytes);
            if piece.end.is_some() {
                break;
            }
        }
        let found = keys_of_dump(&bytes);
        let names: Vec<&str> = found.iter().map(|(_, key, ..)| text(key)).collect();
        assert_eq!(names, ["h", "k"]);
        assert_eq!(encode(&found[0].2), format!("a=1 until {until} b=2 until 0").as_bytes());
    }
}

const REDIS_7: DumpFormat = DumpFormat::Redis7 { expiry_size_max: usize::MAX };

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// The keys of a dump: database, name, value, and when they expire.
pub fn keys_of_dump(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>, Value, Option<i64>)> {
    let mut found = Vec::new();
    let walked = kv::rdb::walk(&mut bytes, |one, _| {
        if let kv::rdb::Found::Key { db, key, value: Some(value), expire_ms } = one {
            found.push((u8::try_from(db).expect("few"), key, value, expire_ms));
        }
        Ok::<(), kv::rdb::Failure>(())
    });
    walked.expect("a whole dump");
    found.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    found
}

/// Keys of a primary, and all commands that it sends.
fn primary(disk: &SimVfs) -> (Rig, Sent) {
    let rig = Rig::open(disk).expect("a good disk");
    let sent = Sent::default();
    let all = sent.clone();
    rig.kv.set_follower(Box::new(move |effects| {
        kv::replicate::tell(effects, &mut |_, words| {
            let words = words.iter().map(|word| word.to_vec()).collect();
            all.lock().unwrap_or_else(PoisonError::into_inner).push(words);
        });
    }));
    rig.kv.follow(true);
    (rig, sent)
}

/// A primary with a hash whose only field expires. Commands that it has sent so far are taken.
fn primary_of_expiring_field(disk: &SimVfs) -> (Rig, Sent) {
    let (rig, sent) = primary(disk);
    for line in ["hset h a 1", "hpexpire h 400 fields 1 a"] {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        rig.run(0, &words).expect("a good disk");
    }
    take_sent(&sent);
    (rig, sent)
}

type Sent = Arc<Mutex<Vec<Vec<Vec<u8>>>>>;

/// The commands that a primary has sent since the last call, as a replica runs them.
fn take_sent(sent: &Sent) -> Vec<String> {
    let mut lines = Vec::new();
    for words in sent.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let commands = field_expiry::commands(&words).unwrap_or_else(|| vec![words]);
        lines.extend(commands.iter().map(|words| text(&words.join(&b' ')).to_lowercase()));
    }
    lines
}

#[test]
fn replicas_are_sent_when_fields_expire_and_that_they_have() {
    let disk = disk();
    let (rig, sent) = primary(&disk);
    let run = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        rig.run(0, &words).expect("a good disk");
        take_sent(&sent)
    };
    run("hset h a 1 b 2 c 3");
    let (soon, later) = (at(400), at(100_000));
    let both =
        [format!("hpexpireat h {soon} fields 1 a"), format!("hpexpireat h {soon} fields 1 b")];
    assert_eq!(run("hpexpire h 400 fields 2 a b"), both);
    assert_eq!(run("hexpire h 100 fields 1 c"), [format!("hpexpireat h {later} fields 1 c")]);
    assert_eq!(run("hincrbyfloat h c 1"), ["hsetex h keepttl fields 1 c 4"]);
    assert_eq!(run("hincrbyfloat h d 1"), ["hset h d 1"]);
    assert_eq!(run("hpersist h fields 1 b"), ["hpersist h fields 1 b"]);
    let lines = run("hsetex h px 400 fields 1 e 5");
    assert_eq!(lines, ["hset h e 5".to_owned(), format!("hpexpireat h {soon} fields 1 e")]);
    assert_eq!(run("hsetex h keepttl fields 1 e 6"), ["hsetex h keepttl fields 1 e 6"]);
    assert_eq!(run("hsetex h fields 1 f 6"), ["hset h f 6"]);
    assert_eq!(run("hgetex h px 400 fields 1 f"), [format!("hpexpireat h {soon} fields 1 f")]);
    assert_eq!(run("hgetdel h fields 1 f"), ["hdel h f"]);
    run("hset last x 1");
    run("hpexpire last 400 fields 1 x");
    advance(&disk, 1_000);
    assert_eq!(run("hget h b"), ["hdel h a e"]);
    rig.kv.keep().expect("a good disk");
    assert_eq!(take_sent(&sent), ["hdel last x"]);
}

#[test]
fn field_expiry_that_a_dump_does_not_have_is_sent_or_counted() {
    let disk = disk();
    let (rig, sent) = primary_of_expiring_field(&disk);
    let line = format!("hpexpireat h {} fields 1 a", at(400));
    for (format, lines, left_out) in [
        (DumpFormat::Newest, vec![], 0),
        (REDIS_7, vec![line], 0),
        (DumpFormat::Redis7 { expiry_size_max: 20 }, vec![], 1),
    ] {
        let mut keys = rig.kv.lock();
        assert!(keys.begin_dump(format, &[], &[]));
        let piece = keys.dump_some(1 << 20).expect("a good disk");
        rig.kv.commit(&mut keys).expect("a good disk");
        assert_eq!(take_sent(&sent), lines);
        assert_eq!(piece.end.expect("whole").field_expiries, left_out);
        // Whoever reads the file alone misses what is not in it.
        let has_note = piece.bytes.windows(14).any(|bytes| bytes == b"quipu-left-out");
        assert_eq!(has_note, format != DumpFormat::Newest);
    }
}

#[test]
fn copies_are_sent_with_the_times_of_their_fields() {
    let disk = disk();
    let (rig, sent) = primary_of_expiring_field(&disk);
    // What a copy becomes has no words of Redis: its payload is not text.
    rig.run(0, &[b"copy", b"h", b"other"]).expect("a good disk");
    let words: Vec<Vec<Vec<u8>>> =
        std::mem::take(&mut *sent.lock().unwrap_or_else(PoisonError::into_inner));
    let words: Vec<Vec<&[u8]>> =
        words.iter().map(|words| words.iter().map(Vec::as_slice).collect()).collect();
    let last = words.last().and_then(|words| field_expiry::commands(words)).expect("a script");
    assert_eq!(last, [[&b"HPEXPIREAT"[..], b"other", at(400).as_bytes(), b"FIELDS", b"1", b"a"]]);
}

/// All keys that are stored, expired or not, with their values and times.
pub fn stored(rig: &Rig) -> Map {
    let mut keys = rig.kv.lock();
    keys.sees_expired = true;
    let mut map = Map::new();
    for db in 0..DATABASES {
        let mut names: Vec<Vec<u8>> = Vec::new();
        keys.scan(db, 0, usize::MAX, |key, _| names.push(key.to_vec())).expect("a good disk");
        for key in names {
            let expire_ms = keys.expire_of(db, &key).expect("a good disk").expect("there");
            let value = keys.value(db, &key).expect("a good disk").map(encode);
            map.insert((db, key), (value.expect("there"), expire_ms));
        }
    }
    keys.sees_expired = false;
    map
}

const FILE: &str = "/data/keys/replica-of";

fn record(state: ReplicaState) -> PrimaryRecord {
    PrimaryRecord { host: "10.0.0.7".to_owned(), port: 6379, state }
}

fn problems(disk: &SimVfs, data: &str) -> Vec<String> {
    let report = kv::verify::verify(disk, Path::new(data)).expect("listable").expect("keys");
    report.problems.into_iter().map(|(_, what)| what).collect()
}

#[test]
fn damage_to_the_file_of_the_primary_never_makes_a_primary() {
    let good = disk();
    let rig = Rig::open(&good).expect("a good disk");
    rig.kv.write_primary(Some(&record(ReplicaState::Whole))).expect("a good disk");
    rig.close().expect("a good disk");
    let bytes = good.read(Path::new(FILE)).expect("there");
    let flipped = (0..8 * bytes.len() - 8).map(|bit| {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        bad
    });
    let cut = (0..bytes.len() - 1).map(|size| bytes[..size].to_vec());
    let zeros = vec![0; bytes.len()];
    for bad in flipped.chain(cut).chain([zeros]).map(Some).chain([None]) {
        let disk = good.kill();
        match &bad {
            Some(bad) => vfs::write_atomic(&disk, Path::new(FILE), bad).expect("a good disk"),
            None => disk.remove(Path::new(FILE)).expect("a file"),
        }
        let what = bad.map(|bad| String::from_utf8_lossy(&bad).into_owned());
        assert_eq!(problems(&disk, DATA).len(), 1, "{what:?}");
        let rig = Rig::open(&disk).expect("the keys are whole");
        let error = rig.kv.read_primary().expect_err("damaged");
        assert!(error.contains("REPLICAOF NO ONE"), "{error}");
        assert!(rig.kv.lock().leaves_expired, "{what:?}");
        rig.kv.write_primary(None).expect("a person decided");
        drop(rig);
        assert_eq!(problems(&disk, DATA).len(), 0, "{what:?}");
        let rig = Rig::open(&disk).expect("whole");
        assert_eq!(rig.kv.read_primary(), Ok(None));
        assert!(!rig.kv.lock().leaves_expired);
    }
}

#[test]
fn file_of_an_earlier_version_names_the_primary() {
    for (bytes, expected) in [
        (&b"10.0.0.7 6379 whole\n"[..], Some(Some(record(ReplicaState::Whole)))),
        (b"10.0.0.7 6379 partial\n", Some(Some(record(ReplicaState::Partial)))),
        (b"", Some(None)),
        (b"10.0.0.7 637900 whole\n", None),
        (b"10.0.0.7 6379", None),
    ] {
        let disk = disk();
        let rig = Rig::open(&disk).expect("a good disk");
        rig.kv.write_beside(REPLICA_OF, bytes).expect("a good disk");
        assert_eq!(rig.kv.read_primary().ok(), expected, "{bytes:?}");
    }
}

#[test]
fn snapshot_of_a_replica_follows_nobody() {
    let (data, snapshot) = (Path::new("/snapshot"), "/snapshot");
    for state in [ReplicaState::Whole, ReplicaState::Partial] {
        let disk = disk();
        let rig = Rig::open(&disk).expect("a good disk");
        rig.run(0, &[b"set", b"a", b"1"]).expect("a good disk");
        rig.kv.write_primary(Some(&record(state))).expect("a good disk");
        rig.kv.snapshot(data).expect("a good disk");
        assert_eq!(rig.kv.read_primary(), Ok(Some(record(state))), "the keys go on");
        assert_eq!(problems(&disk, snapshot), Vec::<String>::new());
        let copy = Rig::open_in(Arc::new(disk.clone()), data).expect("whole");
        let found = copy.kv.read_primary().expect("whole").expect("there");
        // Keys that were loaded by half have to get the others.
        let is_partial = state == ReplicaState::Partial;
        assert_eq!((found.is_followed(), copy.kv.lock().leaves_expired), (is_partial, is_partial));
        assert!(is_found(&copy, "a"));
    }
}
