//! Line protocol over TCP and UDP, as Telegraf's `socket_writer` sends it, against the real binary.

use anyhow::{Context, Result, ensure};
use e2e::http::connect;
use e2e::{Launch, Server, poll};
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

/// 2024-02-29 12:00:00 UTC in nanoseconds.
const NOON: i64 = 1_709_208_000_000_000_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, and the address where it takes lines.
fn start(directory: &tempfile::TempDir, flags: &[(&str, &str)]) -> Result<(Server, String)> {
    let launch = Launch::new(directory.path()).flag("influx-listen", "127.0.0.1:0");
    let server = flags.iter().fold(launch, |all, (name, value)| all.flag(name, value)).start()?;
    let address = address_of(&server)?;
    Ok((server, address))
}

fn address_of(server: &Server) -> Result<String> {
    poll("the address of the listener", PATIENCE, || {
        let log = server.log();
        let (_, rest) = log.rsplit_once("over TCP and UDP at ").context("not said")?;
        Ok(rest.split_once(' ').context("not whole")?.0.to_string())
    })
}

/// Waits until a series has so many samples.
fn wait_for(server: &Server, metric: &str, count: usize) -> Result<()> {
    poll("samples", PATIENCE, || {
        let found = server.export(metric)?.len();
        ensure!(found == count, "{found} of {count} samples of {metric}");
        Ok(())
    })
}

fn metric_is(server: &Server, series: &str, expected: f64) -> Result<()> {
    poll("a metric", PATIENCE, || {
        let found = server.metric(series)?;
        ensure!(found == expected, "{series} is {found}, not {expected}");
        Ok(())
    })
}

/// Waits until the server has closed the connection; it says nothing.
fn wait_for_end(stream: &mut TcpStream) -> Result<()> {
    let mut rest = Vec::new();
    // Bytes that were not read make the end a reset.
    let _ = stream.read_to_end(&mut rest);
    ensure!(rest.is_empty(), "the server said {:?}", String::from_utf8_lossy(&rest));
    Ok(())
}

#[test]
fn lines_over_tcp_are_stored_and_bad_ones_skipped() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, address) = start(&directory, &[])?;
    let mut stream = connect(&address)?;
    write!(stream, "cpu,host=a usage=1,idle=2 {NOON}\nthis is bad\ncpu,host=b usa")?;
    wait_for(&server, "cpu_usage", 1)?;
    writeln!(stream, "ge=3 {NOON}\n# a comment\n")?;
    wait_for(&server, "cpu_usage", 2)?;
    let time = (NOON / 1_000_000).to_string();
    let found = server.export("{__name__=~\"cpu_.*\",host=\"a\"}")?;
    ensure!(found.samples("cpu_usage{host=\"a\"}") == [format!("{time} 1")], "{found:?}");
    ensure!(found.samples("cpu_idle{host=\"a\"}") == [format!("{time} 2")], "{found:?}");
    metric_is(&server, "quipu_insert_lines_refused_total{protocol=\"influx_tcp\"}", 1.0)?;
    metric_is(&server, "quipu_insert_samples_total{protocol=\"influx_tcp\"}", 3.0)?;
    metric_is(&server, "quipu_influx_socket_lines_total{transport=\"tcp\"}", 3.0)?;
    metric_is(&server, "quipu_connections{listener=\"influx\"}", 1.0)?;
    ensure!(0.0 < server.metric("quipu_insert_bytes_total{protocol=\"influx_tcp\"}")?);
    poll("a line in the log", PATIENCE, || {
        let log = server.log();
        let sender = format!("influx_tcp from {}: ", stream.local_addr()?);
        ensure!(log.contains("this is bad") && log.contains(&sender), "{log}");
        Ok(())
    })?;
    // The last line needs no newline when the client ends.
    write!(stream, "cpu,host=c usage=4 {NOON}")?;
    drop(stream);
    wait_for(&server, "cpu_usage", 3)?;
    metric_is(&server, "quipu_connections{listener=\"influx\"}", 0.0)?;
    metric_is(&server, "quipu_connections_total{listener=\"influx\"}", 1.0)?;
    server.stop()
}

#[test]
fn many_lines_come_whole_whatever_their_pieces() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, address) = start(&directory, &[])?;
    let lines: String = (0..60_000)
        .map(|n| format!("m,host=h{} v={n} {}\n", n % 7, NOON + n * 1_000_000))
        .collect();
    let mut streams = [connect(&address)?, connect(&address)?];
    let (all, by_halves) = (lines.as_bytes(), lines.replace("m,", "n,"));
    streams[0].write_all(all)?;
    for piece in by_halves.as_bytes().chunks(4999) {
        streams[1].write_all(piece)?;
    }
    drop(streams);
    wait_for(&server, "m_v", 60_000)?;
    wait_for(&server, "n_v", 60_000)?;
    metric_is(&server, "quipu_insert_lines_refused_total{protocol=\"influx_tcp\"}", 0.0)?;
    server.stop()
}

#[test]
fn datagrams_are_stored_and_bad_lines_skipped() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, address) = start(&directory, &[])?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let send = |text: &str| socket.send_to(text.as_bytes(), &address);
    send(&format!("cpu,host=a usage=1 {NOON}\nthis is bad\ncpu,host=b usage=2 {NOON}"))?;
    // A datagram's last line is none of the next one's.
    send(&format!("cpu,host=c usage=3 {NOON}"))?;
    wait_for(&server, "cpu_usage", 3)?;
    metric_is(&server, "quipu_influx_datagrams_total", 2.0)?;
    metric_is(&server, "quipu_influx_datagrams_dropped_total", 0.0)?;
    metric_is(&server, "quipu_insert_lines_refused_total{protocol=\"influx_udp\"}", 1.0)?;
    metric_is(&server, "quipu_influx_socket_lines_total{transport=\"udp\"}", 4.0)?;
    server.stop()
}

#[test]
fn what_is_open_at_the_end_of_a_datagram_hides_no_other() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, address) = start(&directory, &[])?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    for round in 0..20 {
        let good = format!("cpu,round=r{round} usage=1,state=\"on\" {NOON}");
        for datagram in ["bad v=1,s=\"half a str", &good, "bad v=1\\", "bad\\"] {
            socket.send_to(datagram.as_bytes(), &address)?;
        }
    }
    wait_for(&server, "cpu_usage", 20)?;
    metric_is(&server, "quipu_influx_datagrams_total", 80.0)?;
    ensure!(server.export("bad_v")?.is_empty());
    server.stop()
}

#[test]
fn a_line_that_is_too_long_ends_its_connection_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, address) = start(&directory, &[("influx.max-line-size", "4KiB")])?;
    let mut other = connect(&address)?;
    writeln!(other, "other v=1 {NOON}")?;
    wait_for(&server, "other_v", 1)?;
    for (end, time) in [("\n", NOON), ("", NOON + 1)] {
        let mut stream = connect(&address)?;
        let long = "x".repeat(5000);
        write!(stream, "before v=1 {time}\nm,host={long} v=1{end}")?;
        wait_for_end(&mut stream)?;
    }
    wait_for(&server, "before_v", 2)?;
    metric_is(&server, "quipu_limit_hits_total{limit=\"influx.max-line-size\"}", 2.0)?;
    server.wait_for_log("4096 bytes (influx.max-line-size)")?;
    ensure!(server.export("m_v")?.is_empty());
    writeln!(other, "other,host=b v=2 {NOON}")?;
    wait_for(&server, "other_v", 2)?;
    server.stop()
}

#[test]
fn a_store_that_takes_nothing_closes_the_connection_after_its_time() -> Result<()> {
    let directory = tempfile::tempdir()?;
    // More than any disk has: the store is read-only.
    let flags = [("free-disk-min", "1000000GiB"), ("influx.retry-duration", "1500ms")];
    let (server, address) = start(&directory, &flags)?;
    let mut stream = connect(&address)?;
    writeln!(stream, "m v=1 {NOON}")?;
    wait_for_end(&mut stream)?;
    poll("a line in the log", PATIENCE, || {
        let log = server.log();
        ensure!(log.contains("lines over TCP wait: the store is read-only"), "{log}");
        ensure!(log.contains("(influx.retry-duration): the store is read-only"), "{log}");
        Ok(())
    })?;
    metric_is(&server, "quipu_limit_hits_total{limit=\"influx.retry-duration\"}", 1.0)?;
    metric_is(&server, "quipu_insert_lines_refused_total{protocol=\"influx_tcp\"}", 1.0)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.send_to(b"m v=1", &address)?;
    metric_is(&server, "quipu_influx_datagrams_dropped_total", 1.0)?;
    server.stop()
}

#[test]
fn connections_are_limited_and_the_silent_end() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [("influx.max-connections", "1"), ("influx.idle-timeout", "300ms")];
    let (server, address) = start(&directory, &flags)?;
    let mut first = connect(&address)?;
    metric_is(&server, "quipu_connections_total{listener=\"influx\"}", 1.0)?;
    let mut second = connect(&address)?;
    wait_for_end(&mut first)?;
    wait_for_end(&mut second)?;
    ensure!(1.0 <= server.metric("quipu_limit_hits_total{limit=\"influx.idle-timeout\"}")?);
    server.stop()
}

#[test]
fn a_clean_stop_keeps_what_was_sent_and_a_restart_shows_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, address) = start(&directory, &[("durability", "relaxed")])?;
    let mut stream = connect(&address)?;
    writeln!(stream, "first v=1 {NOON}")?;
    wait_for(&server, "first_v", 1)?;
    let lines: String = (0..5000).map(|n| format!("m v={n} {}\n", NOON + n * 1_000_000)).collect();
    stream.write_all(lines.as_bytes())?;
    write!(stream, "half a li")?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.send_to(format!("d v=1 {NOON}").as_bytes(), &address)?;
    let server = server.restart()?;
    wait_for_end(&mut stream)?;
    for (metric, count) in [("first_v", 1), ("m_v", 5000), ("d_v", 1)] {
        let found = server.export(metric)?.len();
        ensure!(found == count, "{found} of {count} samples of {metric}");
    }
    let mut stream = connect(&address_of(&server)?)?;
    writeln!(stream, "first,again=yes v=2 {NOON}")?;
    wait_for(&server, "first_v", 2)?;
    server.stop()
}

#[test]
fn other_addresses_need_the_owners_word() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("influx-listen", "0.0.0.0:0");
    let refusal = launch.clone().flag("bearer-token", "t").refusal()?;
    for part in ["--influx-listen", "no credentials", "--allow-anonymous"] {
        ensure!(refusal.contains(part), "{part:?} is not in {refusal}");
    }
    launch.flag("allow-anonymous", "true").start()?.stop()
}

#[test]
fn http_on_the_port_of_lines_gets_the_right_port() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, address) = start(&directory, &[])?;
    let mut stream = connect(&address)?;
    let request = "POST /write?db=x HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\nhm v=1\n";
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("--http-listen"), "{answer}");
    // The body is no line of the client's.
    connect(&address)?.write_all(b"last v=1\n")?;
    wait_for(&server, "last_v", 1)?;
    ensure!(server.export("hm_v")?.is_empty(), "the body was stored");
    Ok(())
}
