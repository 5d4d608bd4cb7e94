//! `TS.*` against the real binary: what a Redis client adds PromQL reads at once, what other doors
//! wrote Redis clients read, and each deletes only its own.

use anyhow::{Result, ensure};
use e2e::redis::LineClient;
use e2e::{Launch, poll};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

fn launch(directory: &tempfile::TempDir) -> Launch {
    Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0")
}

#[test]
fn what_ts_add_wrote_promql_reads_and_a_crash_keeps() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    let added = redis.say(&format!("TS.ADD temperature {NOON} 21.5 LABELS room kitchen"))?;
    assert_eq!(added, format!(":{NOON}"));
    let series = "temperature{room=\"kitchen\"}";
    assert_eq!(server.export("temperature")?.samples(series), [format!("{NOON} 21.5")]);
    let blocked = redis.say(&format!("TS.ADD temperature {NOON} 22"))?;
    assert!(blocked.starts_with("-ERR TSDB: Error at upsert"), "{blocked}");

    // Killed without a word.
    drop(server);
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    assert_eq!(redis.say("TS.GET temperature")?, format!("*2 :{NOON} +21.5"));
    assert_eq!(redis.say("TYPE temperature")?, "+TSDB-TYPE");
    let later = NOON + 60_000;
    redis.say(&format!("TS.MADD temperature {later} 22"))?;
    redis.say("RENAME temperature heat")?;
    let series = "heat{room=\"kitchen\"}";
    let samples = [format!("{NOON} 21.5"), format!("{later} 22")];
    assert_eq!(server.export("heat")?.samples(series), samples);
    assert_eq!(redis.say(&format!("TS.DEL heat {later} +"))?, ":1");
    assert_eq!(server.export("heat")?.samples(series), samples[..1]);
    Ok(())
}

#[test]
fn series_that_are_not_in_memory_know_what_they_have() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    let at = |seconds: i64| NOON + 1000 * seconds;
    for name in ["late", "same", "old", "last", "next", "sum"] {
        redis.say(&format!("TS.ADD {name} {} 1 RETENTION 60000", at(0)))?;
        redis.say(&format!("TS.ADD {name} {} 2", at(10)))?;
    }
    redis.say("TS.CREATE new RETENTION 60000")?;
    redis.say("SAVE")?;

    // Killed: none of them remembers its newest sample.
    drop(server);
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    let mut add = |name: &str, seconds: i64, more: &str| {
        redis.say(&format!("TS.ADD {name} {} 7 {more}", at(seconds)))
    };
    for (name, seconds, more) in
        [("late", 5, ""), ("next", 20, ""), ("last", 10, "ON_DUPLICATE LAST"), ("new", 3, "")]
    {
        assert_eq!(add(name, seconds, more)?, format!(":{}", at(seconds)), "{name}");
    }
    assert_eq!(add("sum", 10, "ON_DUPLICATE SUM")?, format!(":{}", at(10)));
    for (name, seconds) in [("same", 10), ("same", 0), ("late", 5), ("next", 20), ("new", 3)] {
        assert!(add(name, seconds, "")?.contains("Error at upsert"), "{name}");
    }
    for (name, seconds) in [("old", -51), ("new", -58)] {
        assert!(add(name, seconds, "")?.contains("retention"), "{name}");
    }
    for (name, seconds, value) in
        [("late", 10, 2), ("next", 20, 7), ("last", 10, 7), ("sum", 10, 9), ("new", 3, 7)]
    {
        let expected = format!("*2 :{} +{value}", at(seconds));
        assert_eq!(redis.say(&format!("TS.GET {name}"))?, expected, "{name}");
    }
    Ok(())
}

/// One `TS.MADD` of many samples against as many of one sample each, on series alike.
#[test]
fn samples_added_together_end_as_if_each_came_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    let at = |seconds: i64| NOON + 1000 * seconds;
    // Far beyond `future-retention`.
    let far = NOON * 5;
    let samples = [
        format!("a {} 1", at(0)),
        format!("b {} 2", at(0)),
        format!("a {} 3", at(0)),
        format!("none {} 1", at(0)),
        format!("text {} 1", at(0)),
        format!("sum {} 5", at(0)),
        format!("sum {} 6", at(0)),
        "b noon 1".to_owned(),
        format!("b {} many", at(1)),
        format!("a {} 4", at(2)),
        format!("a {far} 4"),
        format!("hourly {} 9", at(0)),
        format!("raw {} 1", at(0)),
        format!("raw {} 2", at(4000)),
        format!("b {} 7", at(-5)),
        format!("near {} 1", at(0)),
        format!("near {} 1", at(1)),
    ];
    for place in ["together", "alone"] {
        for (name, more) in [
            ("a", ""),
            ("b", "LABELS room hall"),
            ("sum", "DUPLICATE_POLICY SUM"),
            ("near", "DUPLICATE_POLICY LAST IGNORE 5000 1"),
            ("raw", ""),
            ("hourly", ""),
        ] {
            assert_eq!(redis.say(&format!("TS.CREATE {place}:{name} {more}"))?, "+OK");
        }
        redis.say(&format!("SET {place}:text x"))?;
        let rule = format!("TS.CREATERULE {place}:raw {place}:hourly AGGREGATION sum 3600000");
        assert_eq!(redis.say(&rule)?, "+OK");
    }
    let all = samples.map(|sample| format!("together:{sample}"));
    let together = redis.say(&format!("TS.MADD {}", all.join(" ")))?;
    let mut alone = format!("*{}", all.len());
    for sample in &all {
        let answer = redis.say(&format!("TS.MADD {}", sample.replace("together", "alone")))?;
        alone += answer.strip_prefix("*1").unwrap_or(&answer);
    }
    assert_eq!(together, alone);
    let check = |redis: &mut LineClient| -> Result<()> {
        for name in ["a", "b", "sum", "near", "raw", "hourly"] {
            let read = |redis: &mut LineClient, place: &str| {
                redis.say(&format!("TS.RANGE {place}:{name} - +"))
            };
            assert_eq!(read(redis, "together")?, read(redis, "alone")?, "{name}");
        }
        Ok(())
    };
    check(&mut redis)?;

    // Killed without a word.
    drop(server);
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    check(&mut redis)?;
    let expected = format!("*2 *2 :{} +1 *2 :{} +4", at(0), at(2));
    assert_eq!(redis.say("TS.RANGE together:a - +")?, expected);
    Ok(())
}

#[test]
fn what_others_wrote_is_read_and_stays() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    let lines = format!(
        "up{{job=\"node\",room=\"hall\"}} 1 {NOON}\nheat{{core=\"1\",room=\"hall\"}} 7 {NOON}\n"
    );
    server.write("/api/v1/import/prometheus", lines)?;
    redis.say(&format!("TS.ADD heat {NOON} 3 LABELS room hall"))?;
    redis.say("TS.CREATE empty LABELS room hall")?;

    assert_eq!(
        redis.say("TS.QUERYINDEX room=hall")?,
        "*4 $5 empty $4 heat $26 heat{core=\"1\",room=\"hall\"} $26 up{job=\"node\",room=\"hall\"}"
    );
    let answered = redis.say("TS.MRANGE - + WITHLABELS FILTER room=hall job=node")?;
    let labels = "*2 *2 $3 job $4 node *2 $4 room $4 hall";
    let expected = format!("*1 *3 $26 up{{job=\"node\",room=\"hall\"}} {labels} *1 *2 :{NOON} +1");
    assert_eq!(answered, expected);

    // They go with their key, by whatever way it goes; the others stay.
    assert_eq!(redis.say("DEL heat")?, ":1");
    assert_eq!(server.export("heat")?.len(), 1);
    redis.say(&format!("TS.ADD heat {NOON} 4 LABELS room hall"))?;
    redis.say("PEXPIRE heat 1")?;
    poll("that it expires", PATIENCE, || {
        ensure!(server.export("heat")?.len() == 1, "there still");
        Ok(())
    })?;
    redis.say(&format!("TS.ADD heat {NOON} 5 LABELS room hall"))?;
    assert_eq!(redis.say("FLUSHALL")?, "+OK");
    assert_eq!(
        server.export("heat")?.samples("heat{core=\"1\",room=\"hall\"}"),
        [format!("{NOON} 7")]
    );
    assert_eq!(server.export("{room=\"hall\"}")?.len(), 2);
    Ok(())
}

#[test]
fn who_may_not_read_a_key_is_not_shown_its_samples() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    redis.say(&format!("TS.ADD open:1 {NOON} 1 LABELS room hall"))?;
    redis.say(&format!("TS.ADD secret:1 {NOON} 2 LABELS room hall kind vault"))?;
    server.write("/api/v1/import/prometheus", format!("up{{a=\"1\",room=\"hall\"}} 3 {NOON}\n"))?;
    assert_eq!(redis.say("ACL SETUSER guest on nopass ~open:* +@all")?, "+OK");

    let mut guest = LineClient::of(&server)?;
    assert_eq!(guest.say("AUTH guest x")?, "+OK");
    for command in [
        "TS.MRANGE - + FILTER room=hall",
        "TS.MREVRANGE - + FILTER room=hall",
        "TS.MGET FILTER room=hall",
        "TS.NRANGE 2 open:1 secret:1 - +",
        "TS.READ secret:1 -",
        r#"TS.RANGE "up{a=\"1\",room=\"hall\"}" - +"#,
    ] {
        let said = guest.say(command)?;
        assert!(said.starts_with("-NOPERM"), "{command}: {said}");
    }
    let said = guest.say("EVAL \"return redis.call('TS.MGET', 'FILTER', 'room=hall')\" 0")?;
    assert!(said.contains("NOPERM"), "{said}");
    let shown = format!("*1 *3 $6 open:1 *0 *2 :{NOON} +1");
    assert_eq!(guest.say("TS.MGET FILTER room=hall __name__=open:1")?, shown);
    assert_eq!(guest.say("TS.QUERYINDEX room=hall")?, "*1 $6 open:1");
    assert_eq!(guest.say("TS.QUERYLABELS LABELS")?, "*1 $4 room");
    assert_eq!(guest.say("TS.QUERYLABELS VALUES kind")?, "*0");

    assert!(redis.say("TS.MGET FILTER room=hall")?.starts_with("*3 "));
    assert_eq!(redis.say("TS.QUERYLABELS VALUES kind FILTER room=hall")?, "*1 $5 vault");
    Ok(())
}

#[test]
fn a_reader_waits_for_samples() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let (mut redis, mut reader) = (LineClient::of(&server)?, LineClient::of(&server)?);
    redis.say("TS.ADD t 10 1")?;
    assert_eq!(reader.say("TS.READ t -")?, "*1 *2 :10 +1");
    assert_eq!(reader.say("TS.READ none - BLOCK 0 1")?, "*0");
    assert_eq!(reader.say("TS.READ t 11 BLOCK 1 1")?, "*0", "in vain");
    // What follows stays behind the answer.
    reader.send(b"TS.READ t $ BLOCK 0 2 MAX_COUNT 5\r\n")?;
    poll("that it waits", PATIENCE, || {
        let clients = redis.say("INFO clients")?;
        ensure!(clients.contains("blocked_clients:1"), "{clients}");
        Ok(())
    })?;
    redis.say("TS.ADD t 20 2")?;
    redis.say("TS.MADD t 30 3 t 40 4")?;
    assert_eq!(reader.say("ECHO behind")?, "*3 *2 :20 +2 *2 :30 +3 *2 :40 +4 $6 behind");
    reader.send(b"TS.READ t + BLOCK 0 2\r\n")?;
    poll("that it waits", PATIENCE, || {
        ensure!(redis.say("INFO clients")?.contains("blocked_clients:1"), "not yet");
        Ok(())
    })?;
    redis.say("DEL t")?;
    assert_eq!(reader.say("ECHO gone")?, "*0 $4 gone");
    Ok(())
}

#[test]
fn what_redistimeseries_own_tests_ask_for() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut redis = LineClient::of(&server)?;
    // The bucket of the newest sample that is left is open again.
    redis.say("TS.CREATE from\r\nTS.CREATE to\r\nTS.CREATERULE from to AGGREGATION avg 10")?;
    redis.say("TS.ADD from 1 1\r\nTS.ADD from 3 3\r\nTS.ADD from 11 11")?;
    assert_eq!(redis.say("TS.RANGE to - +")?, "*1 *2 :0 +2");
    assert_eq!(redis.say("TS.DEL from 10 13\r\nTS.RANGE to - +")?, ":1 *0");
    assert_eq!(redis.say("TS.ADD from 22 22\r\nTS.RANGE to - +")?, ":22 *1 *2 :0 +2");
    assert_eq!(redis.say("TS.DEL from - +\r\nTS.RANGE to - +")?, ":3 *0");
    // A bucket that reaches beyond the retention cannot be computed again.
    redis.say("TS.CREATE short RETENTION 25\r\nTS.CREATE avg\r\nTS.CREATERULE short avg AGGREGATION avg 10")?;
    for ms in [1, 9, 10, 29] {
        redis.say(&format!("TS.ADD short {ms} 1"))?;
    }
    let answer = redis.say("TS.DEL short 9 10")?;
    assert!(answer.contains("beyond the series retention period is not possible"), "{answer}");
    // Labels of groups, those that are selected too; sets of no values; values as they are written.
    redis.say("TS.ADD a 1 1 LABELS g x\r\nTS.ADD b 1 2 LABELS g x\r\nTS.ADD nan 1 nan")?;
    let group = redis.say("TS.MRANGE - + SELECTED_LABELS g h FILTER g=x GROUPBY g REDUCE sum")?;
    assert_eq!(group, "*1 *3 $3 g=x *2 *2 $1 g $1 x *2 $1 h $-1 *1 *2 :1 +3");
    assert_eq!(redis.say("TS.QUERYINDEX g=x other=()")?, "*0");
    assert_eq!(redis.say("TS.QUERYINDEX g=x other!=()")?, "*2 $1 a $1 b");
    for wrong in ["TS.ADD a 2 1.", "TS.ADD a 2 .1", "TS.INCRBY nan 1"] {
        assert!(redis.say(wrong)?.starts_with("-ERR TSDB"), "{wrong}");
    }
    // Empty buckets reach to samples beside the range.
    redis.say("TS.ADD b 99 3")?;
    let answer = redis.say("TS.RANGE b 20 49 AGGREGATION sum 10 EMPTY")?;
    assert_eq!(answer, "*3 *2 :20 +0 *2 :30 +0 *2 :40 +0");
    let answer = redis.say("TS.NRANGE 2 a b - + AGGREGATION avg 10")?;
    assert!(answer.contains("number of AGGREGATION arguments"), "{answer}");
    let answer = redis.say("TS.CREATERULE a b AGGREGATION min,max 10")?;
    assert!(answer.contains("exactly one"), "{answer}");
    Ok(())
}
