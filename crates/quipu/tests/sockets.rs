//! Line protocol over sockets when the store has no time: TCP waits, and holds its sender back; a
//! datagram is counted and gone. HTTP/2 says its host in another way.

use crate::common::{Running, start};
use hyper_util::rt::{TokioExecutor, TokioIo};
use net::listeners::table::Listener;
use net::telemetry::Limit;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};

fn address(server: &Running) -> SocketAddr {
    server.server().address_of(Listener::Influx).expect("it listens")
}

/// Looks until a metric is what it should be.
fn wait_for(server: &Running, name: &str, expected: f64) {
    while server.metric(name) != expected {
        std::thread::yield_now();
    }
}

#[test]
fn lines_over_tcp_wait_for_their_turn() {
    let flags = [
        ("influx-listen", "127.0.0.1:0"),
        ("max-concurrent-inserts", "1"),
        ("insert-queue-duration", "20ms"),
    ];
    let server = start(&flags);
    let turn = server.block_on(server.app().inserts.enter()).expect("the only place");
    let mut stream = TcpStream::connect(address(&server)).expect("a connection");
    stream.write_all(b"m v=1 1700000000000000000\n").expect("sent");
    let refusals = "quipu_limit_hits_total{limit=\"insert-queue-duration\"}";
    while server.metric(refusals) < 2.0 {
        std::thread::yield_now();
    }
    assert_eq!(server.metric("quipu_insert_samples_total{protocol=\"influx_tcp\"}"), 0.0);
    drop(turn);
    wait_for(&server, "quipu_insert_samples_total{protocol=\"influx_tcp\"}", 1.0);
    assert_eq!(server.query("m_v", 1_700_000_000), [("m_v".to_string(), "1".to_string())]);
    stream.write_all(b"m v=2 1700000001000000000\n").expect("the connection lives");
    wait_for(&server, "quipu_insert_samples_total{protocol=\"influx_tcp\"}", 2.0);
    server.stop();
}

#[test]
fn datagrams_that_cannot_be_taken_are_counted() {
    let flags = [
        ("influx-listen", "127.0.0.1:0"),
        ("max-concurrent-inserts", "1"),
        ("insert-queue-duration", "1ms"),
    ];
    let server = start(&flags);
    let turn = server.block_on(server.app().inserts.enter()).expect("the only place");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.send_to(b"m v=1\nm,x=y v=1", address(&server)).expect("sent");
    wait_for(&server, "quipu_influx_datagrams_dropped_total", 1.0);
    wait_for(&server, "quipu_insert_lines_refused_total{protocol=\"influx_udp\"}", 2.0);
    drop(turn);
    socket.send_to(b"m v=1 1700000000000000000", address(&server)).expect("sent");
    wait_for(&server, "quipu_insert_samples_total{protocol=\"influx_udp\"}", 1.0);
    server.stop();
}

#[test]
fn a_line_that_never_ends_gives_its_memory_back() {
    let flags = [
        ("influx-listen", "127.0.0.1:0"),
        ("max-body-size", "64KiB"),
        ("max-bodies-size", "128KiB"),
        ("insert-queue-duration", "20ms"),
        ("http.body-timeout", "200ms"),
    ];
    let server = start(&flags);
    let mut streams = [(); 2].map(|()| TcpStream::connect(address(&server)).expect("a socket"));
    for stream in &mut streams {
        stream.write_all(&[b'm'; 20 << 10]).expect("sent");
    }
    let refused = "quipu_limit_hits_total{limit=\"http.body-timeout\"}";
    wait_for(&server, refused, 2.0);
    assert_eq!(server.post("/write", b"m v=1 1700000000000000000").status, 204);
    server.stop();
}

#[test]
fn whole_lines_are_stored_while_others_hold_the_memory() {
    let flags = [
        ("influx-listen", "127.0.0.1:0"),
        ("max-body-size", "64KiB"),
        ("max-bodies-size", "64KiB"),
        ("insert-queue-duration", "20ms"),
    ];
    let server = start(&flags);
    let mut share = server.app().body_memory.share();
    server.block_on(share.grow(1)).expect("all there is");
    let mut stream = TcpStream::connect(address(&server)).expect("a connection");
    let lines: String = (0..5000i64)
        .map(|n| format!("m v={n} {}\n", 1_700_000_000_000_000_000 + n * 1_000_000))
        .collect();
    stream.write_all(lines.as_bytes()).expect("sent");
    drop(stream);
    wait_for(&server, "quipu_insert_samples_total{protocol=\"influx_tcp\"}", 5000.0);
    drop(share);
    server.stop();
}

#[test]
fn a_page_in_a_browser_cannot_send_lines() {
    let server = start(&[("influx-listen", "127.0.0.1:0")]);
    let lines = "m v=1 1700000000000000000\n";
    for head in ["POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 26\r\n\r\n", ""] {
        let mut stream = TcpStream::connect(address(&server)).expect("a connection");
        stream.write_all(head.as_bytes()).expect("sent");
        // It may be closed already.
        let _ = stream.write_all(lines.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
        let stored = server.metric("quipu_insert_samples_total{protocol=\"influx_tcp\"}");
        assert_eq!(stored, if head.is_empty() { 1.0 } else { 0.0 });
    }
    server.stop();
}

/// The status of the answer to a request over HTTP/2 on a connection of its own.
fn status_over_http2(server: &Running, request: hyper::Request<String>) -> u16 {
    server.block_on(async {
        let socket = tokio::net::TcpStream::connect(server.address).await.expect("a socket");
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
                .await
                .expect("a handshake");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("an answer").status().as_u16()
    })
}

#[test]
fn the_authority_of_http2_is_its_host() {
    let server = start(&[]);
    let status = |uri: String| {
        let request = hyper::Request::get(uri).body(String::new()).expect("a request");
        status_over_http2(&server, request)
    };
    assert_eq!(status(format!("http://{}/api/v1/labels", server.address)), 200);
    assert_eq!(status("http://evil.test/api/v1/labels".to_string()), 403);
}

#[test]
fn a_page_of_ours_may_change_things_over_http2() {
    let server = start(&[]);
    let status = |origin: String| {
        let request = hyper::Request::post(format!("http://{}/write", server.address))
            .header("origin", origin)
            .body("m v=1".to_string())
            .expect("a request");
        status_over_http2(&server, request)
    };
    assert_eq!(status(format!("http://{}", server.address)), 204);
    assert_eq!(status("http://evil.test".to_string()), 403);
    assert_eq!(status("null".to_string()), 403);
    server.stop();
}

#[test]
fn answers_that_nobody_takes_do_not_hold_their_connections() {
    let flags = [
        ("http.max-connections", "2"),
        ("http.header-timeout", "100ms"),
        ("http.write-timeout", "200ms"),
    ];
    let server = start(&flags);
    // HTTP/2 with a window of 0 bytes for the answer to one request.
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    let (path, host) = (b"/api/v1/labels", b"localhost");
    let mut head = vec![0x82, 0x86, 0x04, path.len() as u8];
    head.extend(path);
    head.extend([0x01, host.len() as u8]);
    head.extend(host);
    bytes.extend([0, 0, head.len() as u8, 1, 5, 0, 0, 0, 1]);
    bytes.extend(head);
    let mut streams = [server.connect(), server.connect()];
    for stream in &mut streams {
        stream.write_all(&bytes).expect("sent");
    }
    let answered = || server.app().telemetry.limit_hits(Limit::WriteTimeout);
    while answered() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(server.get("/-/healthy").status, 200, "there is room again");
    server.stop();
}
