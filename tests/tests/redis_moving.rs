//! Keys between a real Redis and the real binary: dumps in and out, `MIGRATE`, and a look at them.

use anyhow::{Context, Result, ensure};
use e2e::redis::Reply;
use e2e::{Launch, Redis, RedisClient, Server, launch};
use std::path::Path;
use std::process::Output;

/// A server with a door, over a directory.
pub fn quipu(directory: &Path) -> Result<Server> {
    let launch = Launch::new(directory).flag("redis-listen", "127.0.0.1:0");
    launch.flag("redis.enable-debug-command", "local").start()
}

fn url(server: &Server) -> Result<String> {
    Ok(format!("redis://127.0.0.1:{}", e2e::redis::door_port(server)?))
}

fn kv(words: &[&str]) -> Result<Output> {
    Ok(launch::quipu(&[&["kv"], words].concat())?.output()?)
}

fn words_of(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn done(words: &[&str]) -> Result<String> {
    let output = kv(words)?;
    let text = words_of(&output);
    ensure!(output.status.success(), "{words:?}: {text}");
    Ok(text)
}

/// Keys of all types, in every encoding that Redis 7.0 has of them.
pub fn fill(redis: &mut RedisClient) -> Result<()> {
    let long = "long ".repeat(300);
    redis.must("FLUSHALL")?;
    for (key, value) in [("text", "hello"), ("empty", ""), ("int", "12345"), ("long", &long)] {
        redis.call(&[b"SET", key.as_bytes(), value.as_bytes()])?;
    }
    redis.call(&[b"SET", b"bin\0\xff\r\n", &[0, 255, 13, 10, 128]])?;
    redis.must("SET minus -129")?;
    redis.must("SET later x PXAT 4102444800123")?;
    redis.must("RPUSH list:small a b 3 -70000 99999999999")?;
    redis.must("SADD set:ints 1 2 -3 70000 99999999999")?;
    redis.must("SADD set:words a b c 7")?;
    redis.must("HSET hash:small a 1 b two")?;
    redis.must("EXPIREAT hash:small 4102444800")?;
    redis.must("ZADD zset:small 1 a -inf b 2.5 c 1e300 d")?;
    redis.must("PFADD unique a b c d e f g")?;
    redis.must("GEOADD places 13.361389 38.115556 Palermo 15.087269 37.502669 Catania")?;
    for number in 0..600 {
        let member = format!("member-{number}-{}", number * 7919);
        redis.must(&format!("RPUSH list:big {member}"))?;
        redis.must(&format!("SADD set:big {member}"))?;
        redis.must(&format!("HSET hash:big {member} {number}"))?;
        redis.must(&format!("ZADD zset:big {}.{number} {member}", number % 50))?;
        redis.must(&format!(
            "XADD stream {}-{} field {member} n {number}",
            5 + number / 3,
            number % 3
        ))?;
    }
    redis.call(&[b"RPUSH", b"list:big", long.repeat(8).as_bytes()])?;
    redis.must("XADD stream 900-1 other fields here too")?;
    redis.must("XDEL stream 6-1")?;
    redis.must("XGROUP CREATE stream workers 0")?;
    redis.must("XREADGROUP GROUP workers ann COUNT 7 STREAMS stream >")?;
    redis.must("XREADGROUP GROUP workers bob COUNT 3 STREAMS stream >")?;
    redis.must("XACK stream workers 5-1 7-0")?;
    redis.must("XGROUP CREATE stream idle $")?;
    redis.must("XGROUP CREATECONSUMER stream idle nobody")?;
    redis.must("SELECT 3")?;
    redis.must("SET elsewhere 3")?;
    redis.must("SELECT 15")?;
    redis.must("RPUSH last x")?;
    redis.must("SELECT 0")?;
    let library = "#!lua name=lib\nredis.register_function{function_name='one', \
                   callback=function() return 1 end, flags={'no-writes'}}";
    redis.call(&[b"FUNCTION", b"LOAD", b"REPLACE", library.as_bytes()])?;
    Ok(())
}

#[test]
fn a_dump_of_redis_comes_in_and_goes_back_the_same() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &[])?;
    let mut client = redis.client()?;
    fill(&mut client)?;
    client.must("SAVE")?;
    let expected = client.contents()?;
    ensure!(20 < expected.len(), "{} keys", expected.len());

    let server = quipu(&directory.path().join("data"))?;
    let mut door = RedisClient::of(&server)?;
    let (dump, url) = (directory.path().join("dump.rdb"), url(&server)?);
    let dump = dump.to_str().context("a name")?;
    let said = done(&["import", dump, "--url", &url])?;
    let count = expected.len() + 1;
    ensure!(said.starts_with(&format!("{count} of {count} keys and functions are in")), "{said}");
    assert_eq!(door.contents()?, expected);
    assert_eq!(door.must("FCALL one 0")?, Reply::Int(1));

    // What is there stays, if that is wanted; else it becomes what the file has.
    door.must("SET text changed")?;
    let said = done(&["import", dump, "--url", &url, "--keep-existing"])?;
    ensure!(said.contains(&format!("{} were there and kept", expected.len())), "{said}");
    assert_eq!(door.must("GET text")?.text(), "changed");
    done(&["import", dump, "--url", &url])?;
    assert_eq!(door.contents()?, expected);

    // Out again, with what Redis has not.
    door.must("BF.ADD seen a")?;
    door.must("TS.ADD heat 1709208000000 21.5")?;
    door.must("HSET timed a 1 b 2")?;
    door.must("HPEXPIREAT timed 4102444800000 FIELDS 1 a")?;
    let out = directory.path().join("out");
    std::fs::create_dir(&out)?;
    let file = out.join("dump.rdb");
    let said = done(&["export", file.to_str().context("a name")?, "--url", &url])?;
    ensure!(
        said.contains("1 bloom filters, 1 time series, the expiry of fields of 1 hashes"),
        "{said}"
    );
    ensure!(
        said.contains("bloom filter db0 seen") && said.contains("time series db0 heat"),
        "{said}"
    );
    let second = Redis::start(&out, &[])?;
    let mut client = second.client()?;
    let mut got = client.contents()?;
    let timed = got.remove("db0 timed").context("timed")?;
    ensure!(timed.starts_with("hash -1"), "{timed}");
    assert_eq!(got, expected);
    assert_eq!(client.must("FCALL one 0")?, Reply::Int(1));
    Ok(())
}

#[test]
fn a_damaged_dump_is_named_with_the_place_and_what_stands_before_is_in() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &[])?;
    fill(&mut redis.client()?)?;
    redis.client()?.must("SAVE")?;
    let whole = std::fs::read(directory.path().join("dump.rdb"))?;
    let server = quipu(&directory.path().join("data"))?;
    let url = url(&server)?;
    let import = |name: &str, bytes: &[u8]| -> Result<String> {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes)?;
        let output = kv(&["import", path.to_str().context("a name")?, "--url", &url])?;
        assert_eq!(output.status.code(), Some(1));
        Ok(words_of(&output))
    };

    let said = import("cut.rdb", &whole[..whole.len() * 2 / 3])?;
    ensure!(said.contains("cut.rdb: all that stands before is in: corrupt at byte"), "{said}");
    ensure!(said.contains("cut short") && said.contains("keys and functions are in"), "{said}");
    ensure!(0 < RedisClient::of(&server)?.must("DBSIZE")?.int());

    let mut flipped = whole.clone();
    let at = flipped.len() - 12;
    flipped[at] ^= 0x40;
    let said = import("flipped.rdb", &flipped)?;
    ensure!(said.contains("flipped.rdb: all that stands before is in: corrupt at byte"), "{said}");

    let said = import("none.rdb", b"PK\x03\x04 something else")?;
    ensure!(said.contains("none.rdb") && said.contains("no dump of Redis"), "{said}");
    let output = kv(&["import", "/nowhere.rdb", "--url", &url])?;
    ensure!(words_of(&output).contains("/nowhere.rdb: No such file"), "{}", words_of(&output));
    let output = kv(&["import", "/nowhere.rdb", "--url", "http://localhost"])?;
    ensure!(!output.status.success());
    Ok(())
}

#[test]
fn an_analysis_adds_up_what_there_is() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = quipu(directory.path())?;
    let mut door = RedisClient::of(&server)?;
    for number in 0..300 {
        door.must(&format!("SET session:{number} {}", "x".repeat(50)))?;
    }
    door.call(&[b"SET", b"big", &[b'x'; 50_000]])?;
    door.must("EXPIRE session:7 30")?;
    let said = done(&["analyze", "--url", &url(&server)?, "--top", "3"])?;
    for wanted in ["Biggest keys", "session:<n>", "up to a minute", "string", "db0"] {
        ensure!(said.contains(wanted), "no {wanted} in\n{said}");
    }
    let said = done(&["analyze", "--url", &url(&server)?, "--format", "json"])?;
    let found: serde_json::Value = serde_json::from_str(&said)?;
    assert_eq!(found["all"]["keys"], 301);
    assert_eq!(found["biggest"][0]["key"], "big");
    assert_eq!(found["patterns"][1]["name"], "session:<n>");
    assert_eq!(found["patterns"][1]["keys"], 300);
    Ok(())
}

#[test]
fn migrate_moves_keys_to_a_redis() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &["--requirepass", "secret"])?;
    let mut target = redis.client()?;
    target.must("AUTH secret")?;
    let server = quipu(&directory.path().join("data"))?;
    let mut door = RedisClient::of(&server)?;
    let to = format!("MIGRATE 127.0.0.1 {}", redis.port);

    door.must("SET one 1 PXAT 4102444800000")?;
    door.must("RPUSH two a b")?;
    door.must("HSET three a b")?;
    assert_eq!(door.say(&format!("{to} nothing 0 5000"))?.text(), "NOKEY");
    let refused = door.say(&format!("{to} one 0 5000"))?;
    ensure!(refused.text().contains("Target instance replied with error: NOAUTH"), "{refused:?}");
    assert_eq!(door.must(&format!("{to} one 2 5000 AUTH secret"))?.text(), "OK");
    assert_eq!(door.must("EXISTS one")?, Reply::Int(0));
    target.must("SELECT 2")?;
    assert_eq!(target.must("GET one")?.text(), "1");
    let expiry = target.must("PEXPIRETIME one")?.int();
    ensure!((expiry - 4_102_444_800_000).abs() < 60_000, "{expiry}");

    // Copied, refused as it is there, replaced with others and gone.
    target.must("SELECT 0")?;
    door.must(&format!("{to} two 0 5000 COPY AUTH2 default secret"))?;
    let busy = door.say(&format!("{to} two 0 5000 AUTH secret"))?;
    ensure!(busy.text().contains("BUSYKEY"), "{busy:?}");
    door.call(&[
        b"MIGRATE",
        b"127.0.0.1",
        redis.port.to_string().as_bytes(),
        b"",
        b"0",
        b"5000",
        b"REPLACE",
        b"AUTH",
        b"secret",
        b"KEYS",
        b"two",
        b"missing",
        b"three",
    ])?;
    assert_eq!(door.must("DBSIZE")?, Reply::Int(0));
    assert_eq!(target.must("DBSIZE")?, Reply::Int(2));
    assert_eq!(target.must("LRANGE two 0 -1")?.list().len(), 2);

    door.must("SET stays 1")?;
    let unreachable = door.say(&format!("MIGRATE 127.0.0.1 {} stays 0 500", e2e::free_port()?))?;
    assert_eq!(unreachable.text(), "-IOERR error or timeout connecting to the client");
    assert_eq!(door.must("GET stays")?.text(), "1");
    Ok(())
}

#[test]
fn migrate_within_transactions_and_scripts_moves_keys_as_well() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &[])?;
    let mut target = redis.client()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut door = RedisClient::of(&server)?;
    let port = redis.port.to_string();
    door.must("MULTI")?;
    door.must("SET one 1")?;
    door.must(&format!("MIGRATE 127.0.0.1 {port} one 0 5000"))?;
    door.must("SET behind 1")?;
    let done = door.must("EXEC")?;
    assert_eq!(done.list().iter().map(Reply::text).collect::<Vec<_>>(), ["OK", "OK", "OK"]);
    assert_eq!(door.must("EXISTS one behind")?, Reply::Int(1));
    let script = b"redis.call('SET', 'two', '2') return redis.call('MIGRATE', '127.0.0.1', ARGV[1], 'two', 0, 5000)";
    let moved = door.call(&[b"EVAL", script, b"0", port.as_bytes()])?;
    assert_eq!((moved.text(), door.must("EXISTS two")?), ("OK", Reply::Int(0)));
    assert_eq!(
        target.must("MGET one two")?.list().iter().map(Reply::text).collect::<Vec<_>>(),
        ["1", "2"]
    );
    // What fails is told among the others.
    drop(target);
    drop(redis);
    door.must("MULTI")?;
    door.must("SET one 1")?;
    door.must(&format!("MIGRATE 127.0.0.1 {port} one 0 5000"))?;
    let done = door.must("EXEC")?;
    ensure!(done.list()[1].text().starts_with("-IOERR"), "{done:?}");
    assert_eq!(door.must("EXISTS one")?, Reply::Int(1));
    Ok(())
}
