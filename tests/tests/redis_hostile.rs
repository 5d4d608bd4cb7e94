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
        kill_script(&server, &mut client, script)?;
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
fn a_stop_does_not_wait_for_a_command_that_does_not_end() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = || {
        let launch = launch(&directory).flag("shutdown-timeout", "100ms");
        launch.flag("redis.enable-debug-command", "local")
    };
    let server = launch().start()?;
    let mut client = LineClient::of(&server)?;
    client.say("SET before 1")?;
    client.send(b"SET unanswered 1\r\nDEBUG LOG begins\r\nDEBUG SLEEP 60\r\n")?;
    poll("that it begins", PATIENCE, || {
        server.log().contains("begins").then_some(()).context("not yet")
    })?;
    let error = server.stop().expect_err("nothing was closed").to_string();
    ensure!(error.contains("exit status: 1"), "{error}");
    ensure!(error.contains("a command does not end"), "{error}");
    let server = launch().start()?;
    assert_eq!(LineClient::of(&server)?.say("MGET before unanswered")?, "*2 $1 1 $-1");
    Ok(())
}

/// Scripts that do not end, each in a native function.
const ENDLESS: &[&str] = &[
    "return string.find(string.rep('a',60), string.rep('a*',60)..'b')",
    "return string.match(string.rep('a',100000), '.-.-b')",
    "return string.gsub(string.rep('a',60), string.rep('a*',60)..'b', '')",
    "for word in string.gmatch(string.rep('a',60), string.rep('a*',60)..'b') do end",
    "for word in string.gfind(string.rep('a',60), string.rep('a*',60)..'b') do end",
    "return string.gsub(string.rep('(',1000000), '%b()', '')",
    // A sequence that makes each pivot the second smallest element.
    "local t = {} for i = 1, 400000 do t[i] = i % 2 == 1 and i or 400000 + i end \
     while true do table.sort(t) end",
    "while true do pcall(table.sort, {3, 2, 1, 4, 5}, function() return true end) end",
    "while true do local t = string.rep('a', 100000000) end",
    // The answers are nested tables: each holds the next one a thousand times.
    "local t = 0 for _ = 1, 4 do local u = {} for i = 1, 1000 do u[i] = t end t = u end return t",
    "local t = 0 for _ = 1, 4 do local u = {} for i = 1, 1000 do u[i] = t end t = u end \
     return cjson.encode(t)",
    "local t = 0 for _ = 1, 4 do local u = {} for i = 1, 1000 do u[i] = t end t = u end \
     return cmsgpack.pack(t)",
    "local s = '[' .. string.rep('0,', 3000000) .. '0]' while true do cjson.decode(s) end",
    // Each call takes milliseconds.
    "local s = string.rep('x', 5000000) while true do local t = s:reverse() end",
];

/// A script that took all memory leaves an interpreter that the next one can use.
#[test]
fn scripts_without_memory_end_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    for script in [
        "local t = {} while true do t = {t} end",
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "local t = {} local i = 0 while true do i = i + 1 t[i] = function() return t end end",
        "local t = {} for i = 1, 1e9 do t[i] = 'x' .. i end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t = {t} pcall(error, t) end",
        "local t = {} while true do t[#t + 1] = redis.call('PING') end",
        "local t = {} for i = 1, 1e9 do t[i] = cjson.encode({i}) end",
        "local function f(n) return {f(n + 1)} end return f(1)",
    ] {
        for _ in 0..3 {
            let answer = client.ask(&format!("EVAL \"{script}\" 0"))?;
            ensure!(answer.starts_with("-ERR"), "{script}: {answer}");
            ensure!(client.ask("EVAL \"return 1\" 0")? == ":1", "behind {script}");
        }
    }
    let large = format!("$100000000\r\n{}\r\n", "x".repeat(100_000_000));
    let parts = "*6\r\n$4\r\nEVAL\r\n$12\r\nreturn #ARGV\r\n$1\r\n0\r\n".to_owned();
    client.send((parts + &large.repeat(3)).as_bytes())?;
    let answer = client.say("")?;
    ensure!(answer.contains("not enough memory"), "{answer}");
    ensure!(client.ask("EVAL \"return 1\" 0")? == ":1", "behind large arguments");
    server.stop()
}

#[test]
fn no_pattern_ends_the_process() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    for call in ["find(s, p)", "match(s, p)", "gsub(s, p, '')", "gmatch(s, p)()"] {
        let script = format!(
            "local s, p = string.rep('a',1000000), string.rep('a?',1000000) return (string.{call})"
        );
        let answer = client.say(&format!("EVAL \"{script}\" 0"))?;
        assert!(answer.contains("user_script:1: pattern too complex"), "{answer}");
    }
    // Answers that come at once, and errors as Lua words them.
    for (script, expected) in [
        ("return {string.find('key:42', '(%a+):(%d+)')}", "*4 :1 :6 $3 key $2 42"),
        ("return {('a,b'):gsub(',', {[',']=';'})}", "*2 $3 a;b :1"),
        (
            "return {('abc'):gsub('%w', function(c) if c == 'b' then return 'X' end end)}",
            "*2 $3 aXc :3",
        ),
        (
            "local t = {} for w in ('a bc'):gmatch('%a+') do t[#t+1] = w end return t",
            "*2 $1 a $2 bc",
        ),
        ("return #string.rep('', 2147483647)", ":0"),
        (
            "return {pcall(table.insert, {}, -2147483648, 1)}",
            "*2 $-1 $52 bad argument #2 to 'insert' (position out of bounds)",
        ),
        (
            "return {pcall(string.gsub, 'a', 'a', function() error({err='mine'}) end)}",
            "*2 $-1 $4 mine",
        ),
        (
            "local t = {1,2,3,4} table.insert(t, 2, 9) table.insert(t, 8) return t",
            "*6 :1 :9 :2 :3 :4 :8",
        ),
        ("local t = {} for i = 1, 7999 do t[i] = i end return select('#', unpack(t))", ":7999"),
        ("local t = {} for i = 1, 7999 do t[i] = i end return select(7999, unpack(t))", ":7999"),
    ] {
        assert_eq!(client.say(&format!("EVAL \"{script}\" 0"))?, expected, "{script}");
    }
    for (script, expected) in [
        ("return ('a'):find('[a')", "user_script:1: malformed pattern (missing ']')"),
        ("return ('a'):find('%')", "user_script:1: malformed pattern (ends with '%')"),
        ("return ('a'):gsub('a', '%2')", "user_script:1: invalid capture index"),
        ("return ('a'):find({})", "bad argument #1 to 'find' (string expected, got table)"),
        ("table.sort({1, 'x'})", "ERR attempt to compare "),
        ("table.sort({3, 1, 2, 5, 4}, function() return true end)", "invalid order function"),
    ] {
        let answer = client.say(&format!("EVAL \"{script}\" 0"))?;
        assert!(answer.contains(expected), "{script}: {answer}");
    }
    Ok(())
}

/// Runs a script that does not end, and ends it from another connection.
fn kill_script(server: &Server, client: &mut LineClient, script: &str) -> Result<()> {
    client.send(format!("EVAL \"{script}\" 0\r\n").as_bytes())?;
    let mut other = LineClient::of(server)?;
    poll("that the script takes long", PATIENCE, || {
        ensure!(other.ask("GET x")?.starts_with("-BUSY"), "not yet");
        Ok(())
    })?;
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK", "{script}");
    let answer = client.say("ECHO after")?;
    assert!(answer.contains("Script killed") && answer.ends_with("$5 after"), "{answer}");
    Ok(())
}

#[test]
fn library_functions_that_do_not_end_are_ended() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    client.say("CONFIG SET busy-reply-threshold 50")?;
    for script in ENDLESS {
        kill_script(&server, &mut client, script)?;
    }
    // A stop ends such a script, too.
    client.send(format!("EVAL \"{}\" 0\r\n", ENDLESS[0]).as_bytes())?;
    let mut other = LineClient::of(&server)?;
    poll("that the script takes long", PATIENCE, || {
        ensure!(other.ask("GET x")?.starts_with("-BUSY"), "not yet");
        Ok(())
    })?;
    server.stop()
}

#[test]
fn scripts_of_one_client_leave_room_for_those_of_others() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    let mut say_all = |lines: Vec<String>| -> Result<String> {
        let mut last = String::new();
        for part in lines.chunks(100) {
            last = client.say(&part.join("\r\n"))?;
        }
        Ok(last)
    };
    let first = say_all(vec!["SCRIPT LOAD \"return 'script 0'\"".to_owned()])?;
    let first = first.strip_prefix("$40 ").context("a digest")?.to_owned();
    say_all((1..9000).map(|n| format!("SCRIPT LOAD \"return 'script {n}'\"")).collect())?;
    // Loaded scripts stay, whatever EVAL leaves.
    let evaluated = (0..600).map(|n| format!("EVAL \"return 'evaluated {n}'\" 0"));
    assert_eq!(
        say_all(evaluated.collect())?.rsplit_once('$').context("one")?.1,
        "13 evaluated 599"
    );
    assert_eq!(say_all(vec![format!("EVALSHA {first} 0")])?, "$8 script 0");
    let info = say_all(vec!["INFO memory".to_owned()])?;
    assert!(info.contains("number_of_cached_scripts:9500"), "{info}");
    let functions =
        (0..9000).map(|n| format!("redis.register_function('f{n}', function() return {n} end)"));
    let library = format!("#!lua name=many\n{}", functions.collect::<Vec<_>>().join(" "));
    let load = format!("*3\r\n$8\r\nFUNCTION\r\n$4\r\nLOAD\r\n${}\r\n{library}\r\n", library.len());
    let mut loader = LineClient::of(&server)?;
    loader.send(load.as_bytes())?;
    assert_eq!(loader.say("ECHO after")?, "$4 many $5 after");
    assert_eq!(loader.say("FCALL f8999 0")?, ":8999");
    assert_eq!(say_all(vec!["EVAL \"return 1\" 0".to_owned()])?, ":1");
    Ok(())
}

/// Loads a library with one function, which answers 7.
fn load_library(client: &mut LineClient, name: &str) -> Result<String> {
    let code =
        format!("#!lua name={name}\\nredis.register_function('{name}', function() return 7 end)");
    client.say(&format!("FUNCTION LOAD \"{code}\""))
}

/// A data directory in which a library `old` was saved.
fn with_functions() -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let answer = load_library(&mut LineClient::of(&server)?, "old")?;
    ensure!(answer == "$3 old", "{answer}");
    server.stop()?;
    Ok(directory)
}

/// The words of `quipu verify`.
fn verify(directory: &tempfile::TempDir) -> Result<String> {
    let path = directory.path().display().to_string();
    let output = e2e::launch::quipu(&["verify", "--data-dir", &path])?.output()?;
    let both = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&both).into_owned())
}

#[test]
fn missing_functions_are_named_until_they_are_given_up() -> Result<()> {
    let directory = with_functions()?;
    let path = directory.path().join("keys/functions");
    let whole = std::fs::read(&path)?;
    std::fs::remove_file(&path)?;
    let told = verify(&directory)?;
    ensure!(told.contains("problem") && told.contains("keys/functions is missing"), "{told}");
    let server = launch(&directory).start()?;
    poll("that the log names the file", PATIENCE, || {
        ensure!(server.log().contains("keys/functions is missing"), "{}", server.log());
        Ok(())
    })?;
    let mut client = LineClient::of(&server)?;
    assert_eq!(client.say("SET a 1")?, "+OK");
    let refused = load_library(&mut client, "new")?;
    ensure!(refused.starts_with("-ERR") && refused.contains("FUNCTION FLUSH"), "{refused}");
    ensure!(!path.exists());
    server.stop()?;
    // Restored, it is served again.
    std::fs::write(&path, &whole)?;
    let server = launch(&directory).start()?;
    assert_eq!(LineClient::of(&server)?.say("FCALL old 0")?, ":7");
    server.stop()?;
    // Given up, other libraries are saved.
    std::fs::remove_file(&path)?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    assert_eq!(client.say("FUNCTION FLUSH")?, "+OK");
    load_library(&mut client, "new")?;
    server.stop()?;
    ensure!(!verify(&directory)?.contains("keys/functions is missing"));
    let server = launch(&directory).start()?;
    assert_eq!(LineClient::of(&server)?.say("FCALL new 0")?, ":7");
    Ok(())
}

#[test]
fn damaged_functions_are_not_written_over() -> Result<()> {
    let directory = with_functions()?;
    let path = directory.path().join("keys/functions");
    let whole = std::fs::read(&path)?;
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    std::fs::write(&path, &damaged)?;
    let told = verify(&directory)?;
    ensure!(told.contains("functions") && told.contains("checksum does not match"), "{told}");
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    for _ in 0..2 {
        let refused = load_library(&mut client, "new")?;
        ensure!(refused.starts_with("-ERR") && refused.contains("FUNCTION FLUSH"), "{refused}");
    }
    assert_eq!(std::fs::read(&path)?, damaged);
    server.stop()?;
    // Restored, it is served again.
    std::fs::write(&path, &whole)?;
    let server = launch(&directory).start()?;
    assert_eq!(LineClient::of(&server)?.say("FCALL old 0")?, ":7");
    server.stop()?;
    // Given up, it stays aside.
    std::fs::write(&path, &damaged)?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    assert_eq!(client.say("FUNCTION FLUSH")?, "+OK");
    assert_eq!(std::fs::read(directory.path().join("keys/functions.damaged"))?, damaged);
    load_library(&mut client, "new")?;
    let server = {
        server.stop()?;
        launch(&directory).start()?
    };
    assert_eq!(LineClient::of(&server)?.say("FCALL new 0")?, ":7");
    Ok(())
}

#[test]
fn a_command_that_stops_half_way_ends_its_connection() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).flag("redis.command-timeout", "100ms").start()?;
    let mut idle = LineClient::of(&server)?;
    assert_eq!(idle.ask("PING")?, "+PONG");
    let mut large = LineClient::of(&server)?;
    let value = "x".repeat(256 << 10);
    large.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}", value.len()).as_bytes())?;
    let words = "-ERR a command was not complete after 100ms (redis.command-timeout)\r\n";
    for (half, before) in [
        ("*2\r\n$3\r\nGET\r\n$5\r\nab", ""),
        ("*2\r\n", ""),
        ("GET ab", ""),
        ("PING\r\nGET ab", "+PONG\r\n"),
        // A client that waits for a key is not half-way through a command.
        ("BLPOP nothing 0.3\r\nGET", "*-1\r\n"),
    ] {
        let mut client = LineClient::of(&server)?;
        client.send(half.as_bytes())?;
        assert_eq!(client.rest()?, format!("{before}{words}"), "{half:?}");
    }
    let hits = server.metric("quipu_limit_hits_total{limit=\"redis.command-timeout\"}")?;
    assert_eq!(hits, 5.0);
    // A client between two commands may take its time, and one that has sent much has more.
    assert_eq!(idle.ask("PING")?, "+PONG");
    assert_eq!(large.ask("")?, "+OK");
    Ok(())
}

#[test]
fn debug_is_off_unless_a_flag_allows_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    for command in ["DEBUG SLEEP 1", "DEBUG POPULATE 10", "DEBUG JMAP"] {
        let answer = client.ask(command)?;
        assert!(answer.starts_with("-ERR DEBUG command not allowed"), "{answer}");
    }
    assert_eq!(client.say("CONFIG GET enable-debug-command")?, "*2 $20 enable-debug-command $2 no");
    server.stop()?;
    let server = launch(&directory).flag("redis.enable-debug-command", "local").start()?;
    assert_eq!(LineClient::of(&server)?.ask("DEBUG SLEEP 0")?, "+OK");
    Ok(())
}

#[test]
fn a_client_that_waits_for_a_key_does_not_get_it_once_it_may_not() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut admin = LineClient::of(&server)?;
    admin.say("ACL SETUSER small on >secret ~* +blpop +ping")?;
    let mut small = user(&server, "small")?;
    small.send(b"BLPOP k 0\r\n")?;
    poll("that it waits", PATIENCE, || {
        ensure!(admin.say("INFO clients")?.contains("blocked_clients:1"), "not yet");
        Ok(())
    })?;
    admin.say("ACL SETUSER small resetkeys ~other")?;
    assert_eq!(admin.say("RPUSH k secret")?, ":1");
    let answer = small.ask("PING")?;
    assert!(answer.starts_with("-NOPERM"), "{answer}");
    assert_eq!(admin.say("LRANGE k 0 -1")?, "*1 $6 secret");
    Ok(())
}

#[test]
fn lines_that_clients_cause_have_a_pace_and_a_length() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(&directory).start()?;
    let mut client = LineClient::of(&server)?;
    let script = "for i = 1, 20000 do redis.log(redis.LOG_WARNING, 'flood', i) end \
                  redis.log(redis.LOG_NOTICE, string.rep('x', 100000))";
    client.say(&format!("EVAL \"{script}\" 0"))?;
    poll("the last line", PATIENCE, || {
        server.log().contains("bytes more)").then_some(()).context("not yet")
    })?;
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("flood")).count();
    assert!((100..200).contains(&lines), "{lines} lines");
    assert!(log.lines().all(|line| line.len() < 9000), "a long line");
    poll("a line about those that were left out", PATIENCE, || {
        client.say("EVAL \"redis.log(redis.LOG_WARNING, 'again')\" 0")?;
        server.log().contains("were left out").then_some(()).context("not yet")
    })?;
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
    let launch = launch(&directory).flag("kv-memory", "1MiB");
    let server = launch.flag("redis.enable-debug-command", "local").start()?;
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
