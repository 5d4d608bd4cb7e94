//! Clients of the Redis door who mean harm, against the real binary: what they may not read, what they
//! may not end, what they may not use up.

use anyhow::{Context, Result, ensure};
use e2e::redis::LineClient;
use e2e::{Launch, Server, poll};
use std::collections::BTreeSet;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn user(server: &Server, name: &str) -> Result<LineClient> {
    let mut client = LineClient::of(server)?;
    ensure!(client.say(&format!("AUTH {name} secret"))? == "+OK", "not let in");
    Ok(client)
}

fn launch(directory: &tempfile::TempDir) -> Launch {
    Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0")
}

#[test]
fn a_value_larger_than_a_record_of_the_log_is_kept() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).flag("kv-durability", "always").start()?;
    let mut client = LineClient::of(&server)?;
    // 400 MiB that two short commands make.
    assert_eq!(client.say("SETRANGE large 419430399 x")?, ":419430400");
    assert_eq!(client.say("RENAME large moved")?, "+OK");
    assert_eq!(client.say("SET small 1")?, "+OK");
    drop(server);
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    assert_eq!(client.say("STRLEN moved")?, ":419430400");
    assert_eq!(client.say("GET small")?, "$1 1");
    Ok(())
}

#[test]
fn a_script_leaves_nothing_to_those_of_others_and_breaks_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    for range in ["0,2147483647", "-2147483648,2147483647", "1,9000", "1,1e300"] {
        let answer = client.say(&format!("EVAL \"return {{pcall(unpack,{{}},{range})}}\" 0"))?;
        assert!(answer.ends_with("too many results to unpack"), "{range}: {answer}");
    }
    assert_eq!(client.say("EVAL \"return {unpack({1,2,3},2)}\" 0")?, "*2 :2 :3");
    assert_eq!(client.say("EVAL \"return {unpack({7},'1','1')}\" 0")?, "*1 :7");
    // An end of a line would end the answer, and the rest be taken for the next one.
    let number = "EVAL \"return {big_number='1'..string.char(13,10)..'2'}\" 0";
    assert_eq!(client.say(number)?, "$4 1  2");
    for name in ["getfenv", "setfenv", "newproxy"] {
        let answer = client.say(&format!("EVAL \"return {name}(0)\" 0"))?;
        assert!(answer.contains("nonexistent global variable"), "{answer}");
    }
    assert_eq!(client.say("EVAL \"collectgarbage('setpause',1e9) return 1\" 0")?, ":1");
    assert_eq!(client.say("EVAL \"return type(collectgarbage('count'))\" 0")?, "$6 number");
    Ok(())
}

#[test]
fn a_script_without_end_is_ended_by_who_may() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    client
        .say("CONFIG SET busy-reply-threshold 50\r\nACL SETUSER small on >secret ~* +get +ping")?;
    let mut small = user(&server, "small")?;
    client.send(b"EVAL \"while true do end\" 0\r\n")?;
    let mut other = LineClient::of(&server)?;
    poll("that the script takes long", PATIENCE, || {
        // Those who are told so ask for nothing that the script has.
        ensure!(other.ask("GET x")?.starts_with("-BUSY"), "not yet");
        Ok(())
    })?;
    for words in ["SHUTDOWN NOSAVE", "SCRIPT KILL"] {
        let answer = small.ask(words)?;
        assert!(answer.starts_with("-NOPERM"), "{answer}");
    }
    // Whoever asks how the server is gets an answer all the while.
    assert!(server.get("/metrics")?.text().contains("quipu_kv_held_up 1"));
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK");
    let answer = client.say("ECHO after")?;
    assert!(answer.contains("Script killed") && answer.ends_with("$5 after"), "{answer}");
    assert!(server.get("/metrics")?.text().contains("quipu_kv_held_up 0"));
    Ok(())
}

#[test]
fn no_script_keeps_itself_from_being_ended() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    client.say("CONFIG SET busy-reply-threshold 50")?;
    // A handler of errors that does not end, one that is called for its own end, and what takes long
    // without an instruction of the script.
    let endless = "xpcall(error, function() while true do end end)";
    let again = "xpcall(function() while true do end end, function() while true do end end)";
    let sorts =
        "local t = {} for i = 1, 200000 do t[i] = -i % 977 end while true do table.sort(t) end";
    for script in [endless, again, sorts] {
        let load = format!("#!lua name=x\n{script}");
        let load = format!("*3\r\n$8\r\nFUNCTION\r\n$4\r\nLOAD\r\n${}\r\n{load}\r\n", load.len());
        client.send(load.as_bytes())?;
        let answer = client.say("ECHO after")?;
        assert!(answer.contains("FUNCTION LOAD timeout"), "{script}: {answer}");
        client.send(format!("EVAL \"{script}\" 0\r\n").as_bytes())?;
        let mut other = LineClient::of(&server)?;
        poll("that the script takes long", PATIENCE, || {
            ensure!(other.ask("GET x")?.starts_with("-BUSY"), "not yet");
            Ok(())
        })?;
        assert_eq!(other.ask("SCRIPT KILL")?, "+OK", "{script}");
        let answer = client.say("ECHO after")?;
        assert!(answer.contains("Script killed") && answer.ends_with("$5 after"), "{answer}");
    }
    // Handlers do what they did.
    let caught = client.say(
        "EVAL \"return {xpcall(function() error({err='x'}) end, function(e) return e.err end)}\" 0",
    )?;
    assert_eq!(caught, "*2 $-1 $1 x");
    let passed = client.say("EVAL \"return {xpcall(function() return 1, 2 end, error)}\" 0")?;
    assert_eq!(passed, "*3 :1 :1 :2");
    let sorted = client.say(
        "EVAL \"local t = {3, 1, 2} table.sort(t, function(a, b) return b < a end) return t\" 0",
    )?;
    assert_eq!(sorted, "*3 :3 :2 :1");
    Ok(())
}

#[test]
fn a_stop_does_not_wait_for_a_pattern_that_takes_for_ever() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = || launch(&directory).flag("shutdown-timeout", "100ms");
    let server = launch().start()?;
    let mut client = LineClient::of(&server)?;
    client.say("SET before 1")?;
    // No instruction of the script's is done while a pattern is looked for.
    let script = "redis.call('set', 'unanswered', 1) redis.log(redis.LOG_WARNING, 'it begins') \
                  return string.find(string.rep('a', 20000), '.-.-.-b')";
    client.send(format!("EVAL \"{script}\" 0\r\n").as_bytes())?;
    poll("that it begins", PATIENCE, || {
        server.log().contains("it begins").then_some(()).context("not yet")
    })?;
    let error = server.stop().expect_err("nothing was closed").to_string();
    ensure!(error.contains("exit status: 1"), "{error}");
    ensure!(error.contains("a command does not end"), "{error}");
    let server = launch().start()?;
    assert_eq!(LineClient::of(&server)?.say("MGET before unanswered")?, "*2 $1 1 $-1");
    Ok(())
}

#[test]
fn keys_are_not_read_past_the_rules() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    client.say("ACL SETUSER guest on >secret ~pub* +@all\r\nSET hidden x\r\nRPUSH public 1")?;
    client.say("TS.ADD hiddents 1000 1 LABELS a b\r\nTS.ADD pubts 1000 1 LABELS c d")?;
    let mut guest = user(&server, "guest")?;
    for (words, option) in [
        ("SORT public BY nosort GET hid*", "GET"),
        ("SORT public BY hid*", "BY"),
        ("SORT_RO public GET #", "GET"),
        ("EVAL \"return redis.call('sort','public','by','nosort','get','hid*')\" 0", "GET"),
    ] {
        let denied = format!("{option} option of SORT denied due to insufficient ACL permissions");
        let answer = guest.say(words)?;
        assert!(answer.contains(&denied), "{words}: {answer}");
    }
    assert_eq!(guest.say("SORT public BY nosort")?, "*1 $1 1");
    for words in ["TS.MRANGE - + FILTER a=b", "TS.MGET FILTER a=b"] {
        assert!(guest.say(words)?.starts_with("-NOPERM"), "{words}");
    }
    assert_eq!(guest.say("TS.QUERYINDEX a=b")?, "*0");
    assert_eq!(guest.say("TS.QUERYINDEX c=d")?, "*1 $5 pubts");
    Ok(())
}

#[test]
fn answers_come_in_the_order_of_commands() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    let answer = client.say("MULTI\r\nACL SAVE\r\nECHO x\r\nCONFIG REWRITE\r\nEXEC\r\nECHO y")?;
    assert!(answer.ends_with("*3 +OK $1 x +OK $1 y"), "{answer}");
    assert_eq!(client.say("CLIENT REPLY SKIP\r\nSAVE\r\nECHO x")?, "$1 x");
    // What EXEC cannot be is the end of the transaction.
    let answer = client.say("MULTI\r\nEXEC x\r\nEXEC")?;
    let words =
        "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command";
    assert_eq!(answer, format!("+OK {words} -ERR EXEC without MULTI"));
    // One fact about a filter has its name in version 3.
    client.say("BF.RESERVE bloom 0.01 1000")?;
    assert_eq!(client.say("BF.INFO bloom CAPACITY")?, "*1 :1000");
    let answer = client.say("HELLO 3\r\nBF.INFO bloom CAPACITY\r\nHELLO 2")?;
    assert!(answer.contains(" %1 +Capacity :1000 "), "{answer}");
    client.say("RPUSH list 3 1 2")?;
    assert_eq!(client.say("SORT list BY nosort DESC LIMIT 0 2")?, "*2 $1 2 $1 1");
    Ok(())
}

#[test]
fn memory_has_limits() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    client.say("CONFIG SET client-query-buffer-limit 1mb")?;
    // While it waits nothing that it sends is looked at.
    let mut waiting = LineClient::of(&server)?;
    waiting.send(b"BLPOP nothing 0\r\n")?;
    let flood = vec![b'x'; 1 << 20];
    let sent = (0..64).try_for_each(|_| waiting.send(&flood));
    assert!(sent.is_err(), "64 MiB were taken");
    assert_eq!(client.ask("MULTI")?, "+OK");
    let value = "v".repeat(50_000);
    assert_eq!(client.ask(&format!("SET k {value}"))?, "+QUEUED");
    let answers = (0..40).map(|_| client.ask(&format!("SET k {value}")));
    let last = answers.last().context("answers")??;
    assert!(last.contains("client-query-buffer-limit"), "{last}");
    let executed = client.ask("EXEC")?;
    assert!(executed.starts_with("-EXECABORT"), "{executed}");
    for n in 0..3 {
        client.say(&format!("TS.ADD t{n} 0 1 LABELS a b\r\nTS.ADD t{n} 5000000 1"))?;
    }
    let answer = client.say("TS.MRANGE - + AGGREGATION sum 1 EMPTY COUNT 1 FILTER a=b")?;
    assert!(answer.contains("more than 10000000 rows"), "{answer}");
    let twice = vec!["sum"; 16].join(",");
    let answer = client.say(&format!("TS.RANGE t0 - + AGGREGATION {twice} 1 EMPTY"))?;
    assert!(answer.contains("more than 15 aggregators"), "{answer}");
    Ok(())
}

/// Answers are only looked at for the names in them.
fn names_in(answer: &str) -> BTreeSet<&str> {
    answer.split(' ').filter(|word| word.starts_with("key:")).collect()
}

#[test]
fn all_keys_of_many_are_listed_for_clients_in_transactions_and_scripts() -> Result<()> {
    const KEYS: usize = 30_000;
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).flag("kv-memory", "1MiB").start()?;
    let mut client = LineClient::of(&server)?;
    assert_eq!(client.say(&format!("DEBUG POPULATE {KEYS} key 100"))?, "+OK");
    assert_eq!(client.say("SAVE\r\nSET other x\r\nSELECT 1\r\nSET key:x y")?, "+OK +OK +OK +OK");
    let all = |answer: &str| assert_eq!(names_in(answer).len(), KEYS, "{:.60}", answer);
    for words in [
        "KEYS key:*",
        "MULTI\r\nKEYS key:*\r\nEXEC",
        "EVAL \"return redis.call('keys', 'key:*')\" 0",
    ] {
        all(&client.say(&format!("SELECT 0\r\n{words}"))?);
    }
    // What follows is answered behind it, and what is not answered is not.
    let answer = client.say("KEYS key:1234?\r\nECHO x\r\nCLIENT REPLY SKIP\r\nKEYS *\r\nECHO y")?;
    assert_eq!(names_in(&answer).len(), 10);
    assert!(answer.starts_with("*10 ") && answer.ends_with(" $1 x $1 y"), "{answer}");
    // Whatever it says, one SCAN goes through few enough that others need not wait.
    let answer = client.say(&format!("SCAN 0 COUNT {KEYS}"))?;
    assert!(names_in(&answer).len() < KEYS / 2, "{}", names_in(&answer).len());
    Ok(())
}

#[test]
fn who_comes_when_there_are_too_many_is_told_and_nobody_else_is_closed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).flag("redis.max-connections", "4").start()?;
    let mut listener = LineClient::of(&server)?;
    assert_eq!(listener.ask("SUBSCRIBE news")?, "*3");
    let mut others = (0..3).map(|_| LineClient::of(&server)).collect::<Result<Vec<_>>>()?;
    for other in &mut others {
        assert_eq!(other.ask("PING")?, "+PONG");
    }
    for _ in 0..20 {
        // It may be closed before it is heard.
        let said = LineClient::of(&server)?.ask("PING").unwrap_or_default();
        assert!(said.is_empty() || said == "-ERR max number of clients reached", "{said}");
    }
    for other in &mut others {
        assert_eq!(other.ask("PING")?, "+PONG");
    }
    assert_eq!(others[0].ask("PUBLISH news x")?, ":1", "who listens is there");
    drop(others.pop());
    poll("a place that is free again", PATIENCE, || {
        ensure!(LineClient::of(&server)?.ask("PING")? == "+PONG", "not yet");
        Ok(())
    })
}

#[test]
fn times_at_the_end_of_all_are_answered() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    let answer = client.say("SET k v\r\nPEXPIREAT k 9223372036854775806\r\nEXPIRETIME k")?;
    assert_eq!(answer, "+OK :1 :9223372036854775");
    Ok(())
}
