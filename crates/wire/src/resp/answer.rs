//! Answers as bytes, in version 2 or 3.

/// Bytes that gather for a client.
#[derive(Debug)]
pub struct Answer {
    bytes: Vec<u8>,
    version: u8,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer { bytes: Vec::new(), version: 2 }
    }
}

impl Answer {
    /// An empty one in that version.
    pub fn new(version: u8) -> Answer {
        Answer { bytes: Vec::new(), version }
    }

    /// Its version.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Changes the version of what follows.
    pub fn set_version(&mut self, version: u8) {
        self.version = version;
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The same, to be added to as it is, cut or taken.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn line(&mut self, kind: u8, number: i64) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn head(&mut self, kind: u8, len: usize) {
        self.line(kind, i64::try_from(len).unwrap_or(i64::MAX));
    }

    /// Text on one line; what would end it becomes a space.
    fn text_line(&mut self, kind: u8, text: &str) {
        self.bytes.push(kind);
        let clean =
            text.bytes().map(|byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte });
        self.bytes.extend(clean);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A short status.
    pub fn simple(&mut self, text: &str) {
        self.text_line(b'+', text);
    }

    /// An error; line ends behind it are left out, as Redis does.
    pub fn error(&mut self, text: &str) {
        self.text_line(b'-', text.trim_end_matches(['\r', '\n']));
    }

    /// An integer.
    pub fn int(&mut self, value: i64) {
        self.line(b':', value);
    }

    /// Bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Nothing, where bytes might be.
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(if self.version < 3 { b"$-1\r\n" } else { b"_\r\n" });
    }

    /// Nothing, where an array might be.
    pub fn null_array(&mut self) {
        self.bytes.extend_from_slice(if self.version < 3 { b"*-1\r\n" } else { b"_\r\n" });
    }

    /// An array of so many elements.
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// A map of so many pairs.
    pub fn map(&mut self, len: usize) {
        match self.version {
            2 => self.head(b'*', len * 2),
            _ => self.head(b'%', len),
        }
    }

    /// A set of so many elements.
    pub fn set(&mut self, len: usize) {
        self.head(if self.version < 3 { b'*' } else { b'~' }, len);
    }

    /// Data that nobody asked for.
    pub fn push(&mut self, len: usize) {
        self.head(if self.version < 3 { b'*' } else { b'>' }, len);
    }

    /// A float, whose text is given for version 2 and 3.
    pub fn double(&mut self, text: &str) {
        match self.version {
            2 => self.bulk(text.as_bytes()),
            _ => self.text_line(b',', text),
        }
    }

    /// A truth value.
    pub fn bool(&mut self, value: bool) {
        match self.version {
            2 => self.int(i64::from(value)),
            _ => self.bytes.extend_from_slice(if value { b"#t\r\n" } else { b"#f\r\n" }),
        }
    }

    /// An integer of any length.
    pub fn big_number(&mut self, text: &str) {
        match self.version {
            2 => self.bulk(text.as_bytes()),
            _ => self.text_line(b'(', text),
        }
    }

    /// Text of a format of three letters.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        if self.version < 3 {
            return self.bulk(text);
        }
        self.head(b'=', text.len() + 4);
        self.bytes.extend_from_slice(format.as_bytes());
        self.bytes.push(b':');
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }
}
