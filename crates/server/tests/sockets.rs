//! Line protocol over sockets when the store has no time: TCP waits, and holds its sender back; a
//! datagram is counted and gone. HTTP/2 says its host in another way.

use crate::common::{Running, start};
use hyper_util::rt::{TokioExecutor, TokioIo};
use server::listeners::table::Listener;
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
fn the_authority_of_http2_is_its_host() {
    let server = start(&[]);
    let status = |uri: String| {
        server.block_on(async {
            let socket = tokio::net::TcpStream::connect(server.address).await.expect("a socket");
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
                    .await
                    .expect("a handshake");
            tokio::spawn(connection);
            let request = hyper::Request::get(uri).body(String::new()).expect("a request");
            sender.send_request(request).await.expect("an answer").status().as_u16()
        })
    };
    assert_eq!(status(format!("http://{}/api/v1/labels", server.address)), 200);
    assert_eq!(status("http://evil.test/api/v1/labels".to_string()), 403);
}
