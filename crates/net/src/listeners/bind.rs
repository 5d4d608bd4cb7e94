//! Sockets that listen, before anybody is served.

use super::table::{Listener, Transport};
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket, UdpSocket};

/// Connections that the system completes before they are accepted; it allows 4,096 by default.
const BACKLOG: u32 = 4096;
/// How often another port is tried when the system chose one that is taken for datagrams.
const PORTS_TRIED_MAX: usize = 16;

/// The sockets of one listener.
#[derive(Debug)]
pub struct Bound {
    /// Whose they are.
    pub listener: Listener,
    /// Where they are, with the port that the system chose.
    pub address: SocketAddr,
    /// For connections.
    pub streams: TcpListener,
    /// For datagrams, where it takes any.
    pub datagrams: Option<UdpSocket>,
}

/// Binds the sockets of a listener; must be called within the runtime.
///
/// # Errors
/// When the address is taken or not of this machine.
pub fn bind(listener: Listener, wanted: SocketAddr) -> io::Result<Bound> {
    let mut tried = 1;
    loop {
        let streams = streams(wanted)?;
        let address = streams.local_addr()?;
        let datagrams = match listener.row().transport {
            Transport::Streams => None,
            Transport::StreamsAndDatagrams => match datagrams(address) {
                Ok(socket) => Some(socket),
                // Both have one port, which the system chose knowing the streams' alone.
                Err(_) if wanted.port() == 0 && tried < PORTS_TRIED_MAX => {
                    tried += 1;
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        return Ok(Bound { listener, address, streams, datagrams });
    }
}

/// A listener with a long queue: a fleet that reconnects all at once must not be turned away.
fn streams(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait for connections of the process before it.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn datagrams(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_datagrams_have_one_port_and_a_taken_one_is_said() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        runtime.expect("a runtime").block_on(async {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let bound = bind(Listener::Influx, any).expect("free ports");
            let datagrams = bound.datagrams.as_ref().expect("a socket for datagrams");
            assert_eq!(datagrams.local_addr().expect("an address"), bound.address);
            let taken = bind(Listener::Influx, bound.address).expect_err("taken");
            assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
            assert!(bind(Listener::Http, any).expect("a free port").datagrams.is_none());
        });
    }
}
