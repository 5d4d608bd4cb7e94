//! Replies of Redis commands over damage are whole or errors, never shorter lists.

use crate::damage::{files, fill, flip};
use crate::whole_answers::{flip_value, with_redis};
use anyhow::{Result, ensure};
use e2e::Launch;
use e2e::redis::RedisClient;

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;

/// Writes two values of each type; the records of those whose names end in `b` are damaged then.
const VALUES: &[&str] = &[
    "SET s:a the-value-of-s:a",
    "SET s:b the-value-of-s:b",
    "RPUSH l:b the-value-of-l:b x",
    "SADD e:a the-value-of-e:a x",
    "SADD e:b the-value-of-e:b x",
    "HSET h:b f the-value-of-h:b",
    "ZADD z:a 1 the-value-of-z:a 1 x",
    "ZADD z:b 1 the-value-of-z:b 1 x",
    "XADD x:a 1-1 f the-value-of-x:a",
    "XADD x:b 1-1 f the-value-of-x:b",
    "RPUSH names a b",
];

/// Commands that need a damaged value, or all keys.
const READERS: &[&str] = &[
    "MGET s:a s:b",
    "LCS s:a s:b",
    "BITOP OR to s:a s:b",
    "SORT names BY nosort GET s:*",
    "SORT names BY s:* ALPHA GET #",
    "LRANGE l:b 0 -1",
    "LMPOP 2 l:none l:b LEFT",
    "BLPOP l:none l:b 0",
    "SUNION e:a e:b",
    "SINTER e:a e:b",
    "SDIFF e:a e:b",
    "SINTERCARD 2 e:a e:b",
    "SUNIONSTORE to e:a e:b",
    "SSCAN e:b 0",
    "HGETALL h:b",
    "HSCAN h:b 0",
    "ZUNION 2 z:a z:b WITHSCORES",
    "ZINTER 2 z:a z:b",
    "ZDIFF 2 z:a z:b",
    "ZINTERCARD 2 z:a z:b",
    "ZRANGESTORE to z:b 0 -1",
    "ZMPOP 2 z:none z:b MIN",
    "ZSCAN z:b 0",
    "XREAD STREAMS x:a x:b 0 0",
    "XRANGE x:b - +",
    "XINFO STREAM x:b FULL",
    "PFCOUNT to s:b",
    "DUMP s:b",
    "COPY s:b to",
    "RENAME s:b to",
    "OBJECT ENCODING s:b",
    "KEYS *",
    "DEBUG DIGEST",
    "DEBUG DIGEST-VALUE s:a s:b",
];

/// Sends a command and `PING` behind it, which would be taken for a missing element of a list.
fn error_of(client: &mut RedisClient, words: &[&str]) -> Result<String> {
    let replies = client.pipeline(&[words, &["PING"]])?;
    ensure!(replies[1].text() == "PONG", "{words:?}: {replies:?}");
    ensure!(replies[0].text().starts_with('-'), "{words:?}: {replies:?}");
    Ok(replies[0].text().to_string())
}

#[test]
fn commands_over_corrupt_values_answer_errors() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path()).start()?;
    let mut client = RedisClient::of(&server)?;
    for command in VALUES {
        client.must(command)?;
    }
    server.stop()?;
    for kind in ["s", "l", "e", "h", "z", "x"] {
        flip_value(directory.path(), &format!("the-value-of-{kind}:b"))?;
    }
    let server = with_redis(directory.path()).start()?;
    for version in [2, 3] {
        let mut client = RedisClient::of(&server)?;
        client.must(&format!("HELLO {version}"))?;
        for command in READERS {
            let words: Vec<&str> = command.split(' ').collect();
            let text = error_of(&mut client, &words)?;
            ensure!(text.contains("read") || text.contains("corrupt"), "{command}: {text}");
            let script = "return redis.call(unpack(ARGV))";
            let called = [&["EVAL", script, "0"], words.as_slice()].concat();
            if words[0] != "DEBUG" {
                error_of(&mut client, &called)?;
            }
            // The reply of EXEC has one element for each command.
            let replies = client.pipeline(&[&["MULTI"], &words, &["GET", "s:a"], &["EXEC"]])?;
            let list = replies[3].list();
            ensure!(list.len() == 2 && list[0].text().starts_with('-'), "{command}: {replies:?}");
            ensure!(list[1].text() == "the-value-of-s:a", "{command}: {replies:?}");
        }
        ensure!(client.must("EXISTS to")?.int() == 0, "no command may have stored a part");
    }
    server.stop()
}

#[test]
fn time_series_commands_over_damaged_samples_answer_errors() -> Result<()> {
    let directory = tempfile::tempdir()?;
    fill(directory.path())?;
    flip(&files(directory.path(), "parts")?[0], 40)?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let key = |name: &str| format!("{name}_v{{host=\"h\"}}");
    let (early, late) = (key("early"), key("late"));
    let (from, to) = (format!("{NOON}000"), format!("{}000", NOON + 299));
    let commands: &[&[&str]] = &[
        &["TS.RANGE", &early, &from, &to],
        &["TS.REVRANGE", &early, &from, &to, "COUNT", "5"],
        &["TS.RANGE", &early, "-", "+", "AGGREGATION", "avg", "60000"],
        &["TS.GET", &early],
        &["TS.MRANGE", "-", "+", "FILTER", "host=h"],
        &["TS.MREVRANGE", "-", "+", "FILTER", "host=h"],
        &["TS.MRANGE", "-", "+", "FILTER", "host=h", "GROUPBY", "host", "REDUCE", "sum"],
        &["TS.MGET", "FILTER", "host=h"],
        &["TS.NRANGE", "2", &late, &early, "-", "+"],
        &["TS.NREVRANGE", "2", &late, &early, "-", "+"],
        &["TS.READ", &early, "-"],
    ];
    for version in ["2", "3"] {
        let mut client = RedisClient::of(&server)?;
        client.must(&format!("HELLO {version}"))?;
        for words in commands {
            let text = error_of(&mut client, words)?;
            ensure!(text.contains("partitions/2024-02/"), "{words:?}: {text}");
        }
        let replies = client.pipeline(&[&["TS.RANGE", &late, &from, &to]])?;
        ensure!(replies[0].list().len() == 300, "{replies:?}");
    }
    server.stop()
}
