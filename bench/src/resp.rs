//! A client of servers that speak Redis' protocol: commands as arrays of bytes, replies as trees.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Arrays in arrays beyond this are no reply of ours.
const DEPTH_MAX: u32 = 64;
/// Elements and bytes of a reply that are believed before they have come.
const TRUSTED: usize = 64 << 10;

/// A command: its name and arguments.
pub type Words = Vec<Vec<u8>>;

/// A reply, as it was written: what differs in bytes differs here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// `+`, and what else is one line: its first byte and the rest of it.
    Line(u8, Vec<u8>),
    /// `:`.
    Int(i64),
    /// `$` and `=`.
    Bulk(Vec<u8>),
    /// A verbatim string, its format included.
    Verbatim(Vec<u8>),
    /// `$-1`, `*-1`, `_`: the byte it began with.
    Null(u8),
    /// `*`, `~`, `%`, `>`: the byte it began with, and what follows one by one.
    List(u8, Vec<Reply>),
}

impl Reply {
    /// For people.
    pub fn shown(&self) -> String {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        match self {
            Reply::Line(first, line) => format!("{}{}", char::from(*first), text(line)),
            Reply::Int(number) => format!(":{number}"),
            Reply::Bulk(bytes) => format!("\"{}\"", text(bytes)),
            Reply::Verbatim(bytes) => format!("=\"{}\"", text(bytes)),
            Reply::Null(first) => format!("{}nil", char::from(*first)),
            Reply::List(first, items) => {
                let items: Vec<String> = items.iter().map(Reply::shown).collect();
                format!("{}[{}]", char::from(*first), items.join(" "))
            }
        }
    }
}

/// A command for people.
pub fn shown(words: &[Vec<u8>]) -> String {
    let word = |word: &Vec<u8>| {
        let text = word.escape_ascii().to_string();
        let is_plain = !text.is_empty() && !text.contains(' ');
        if is_plain { text } else { format!("'{text}'") }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Words of a command that is written in the program.
pub fn words<W: AsRef<[u8]>>(list: &[W]) -> Words {
    list.iter().map(|word| word.as_ref().to_vec()).collect()
}

/// A connection.
pub struct RespClient {
    reader: BufReader<TcpStream>,
    writer: BufWriter<TcpStream>,
}

impl RespClient {
    /// Connects; an answer may take so long.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn connect(authority: &str, timeout: Duration) -> io::Result<RespClient> {
        let stream = TcpStream::connect(authority)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let writer = BufWriter::with_capacity(1 << 16, stream.try_clone()?);
        Ok(RespClient { reader: BufReader::with_capacity(1 << 16, stream), writer })
    }

    /// Writes a command; it goes out with [`RespClient::flush`].
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, words: &[Vec<u8>]) -> io::Result<()> {
        write!(self.writer, "*{}\r\n", words.len())?;
        for word in words {
            write!(self.writer, "${}\r\n", word.len())?;
            self.writer.write_all(word)?;
            self.writer.write_all(b"\r\n")?;
        }
        Ok(())
    }

    /// Sends what was written.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// When there is none in time, or it is malformed.
    pub fn receive(&mut self) -> io::Result<Reply> {
        read(&mut self.reader, 0)
    }

    /// A command and its reply.
    ///
    /// # Errors
    /// As [`RespClient::send`] and [`RespClient::receive`].
    pub fn call<W: AsRef<[u8]>>(&mut self, list: &[W]) -> io::Result<Reply> {
        self.send(&words(list))?;
        self.flush()?;
        self.receive()
    }

    /// Commands sent at once, and their replies.
    ///
    /// # Errors
    /// As [`RespClient::call`].
    pub fn pipeline(&mut self, commands: &[Words]) -> io::Result<Vec<Reply>> {
        /// Commands that are under way at once: their replies have room in the sockets' buffers.
        const STEP: usize = 64;
        let mut replies = Vec::with_capacity(commands.len());
        for step in commands.chunks(STEP) {
            for command in step {
                self.send(command)?;
            }
            self.flush()?;
            for _ in step {
                replies.push(self.receive()?);
            }
        }
        Ok(replies)
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a malformed reply: {what}"))
}

fn read(reader: &mut impl io::BufRead, depth: u32) -> io::Result<Reply> {
    if DEPTH_MAX < depth {
        return Err(malformed("too deep"));
    }
    let line = line(reader)?;
    let (first, rest) = line.split_first().ok_or_else(|| malformed("an empty line"))?;
    let number = || {
        let number = std::str::from_utf8(rest).ok().and_then(|text| text.parse::<i64>().ok());
        number.ok_or_else(|| malformed(&line.escape_ascii().to_string()))
    };
    match first {
        b'+' | b'-' | b',' | b'#' | b'(' => Ok(Reply::Line(*first, rest.to_vec())),
        b':' => Ok(Reply::Int(number()?)),
        b'_' => Ok(Reply::Null(b'_')),
        b'$' | b'=' => match usize::try_from(number()?) {
            Err(_) => Ok(Reply::Null(*first)),
            Ok(size) if *first == b'$' => Ok(Reply::Bulk(bulk(reader, size)?)),
            Ok(size) => Ok(Reply::Verbatim(bulk(reader, size)?)),
        },
        b'*' | b'~' | b'%' | b'>' => {
            let Ok(count) = usize::try_from(number()?) else { return Ok(Reply::Null(*first)) };
            let count = if *first == b'%' { count.saturating_mul(2) } else { count };
            let mut items = Vec::with_capacity(count.min(TRUSTED));
            for _ in 0..count {
                items.push(read(reader, depth + 1)?);
            }
            Ok(Reply::List(*first, items))
        }
        _ => Err(malformed(&line.escape_ascii().to_string())),
    }
}

fn line(reader: &mut impl io::BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(line.to_vec()),
        None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")),
    }
}

fn bulk(reader: &mut impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size.min(TRUSTED));
    let wanted = (size as u64).saturating_add(2);
    reader.take(wanted).read_to_end(&mut bytes)?;
    match (bytes.len() as u64 == wanted, bytes.strip_suffix(b"\r\n")) {
        (true, Some(_)) => bytes.truncate(size),
        _ => return Err(malformed("a string cut short")),
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_as_they_were_written() {
        for (bytes, expected) in [
            ("+OK\r\n", "+OK"),
            ("-ERR no\r\n", "-ERR no"),
            ("$3\r\na\r\n", ""),
            ("$3\r\na\r\n\r\n", "\"a\\r\\n\""),
            ("$3\r\na\rb\r\n", "\"a\\rb\""),
            ("$-1\r\n", "$nil"),
            ("*2\r\n:-1\r\n*-1\r\n", "*[:-1 *nil]"),
            ("%1\r\n+a\r\n,1.5\r\n", "%[+a ,1.5]"),
            ("=5\r\ntxt:a\r\n", "=\"txt:a\""),
            ("*1\r\n", ""),
            ("?1\r\n", ""),
        ] {
            let reply = read(&mut bytes.as_bytes(), 0);
            assert_eq!(reply.map_or(String::new(), |reply| reply.shown()), expected, "{bytes:?}");
        }
    }
}
