//! The first line of a script or library, which may say what it is: `#!lua name=x flags=no-writes`.

use kv::CommandError;

/// What a script says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// It changes nothing.
    pub no_writes: bool,
    /// It may run though memory is short.
    pub allow_oom: bool,
    /// It may run though the data may be old.
    pub allow_stale: bool,
    /// It runs in no cluster.
    pub no_cluster: bool,
    /// Its keys may be of different slots.
    pub allow_cross_slot: bool,
    /// It says nothing: whatever its commands do is allowed.
    pub is_silent: bool,
}

impl Flags {
    /// Sets the flag of that name. Returns whether there is one.
    pub fn add(&mut self, name: &[u8]) -> bool {
        let flag = match name {
            b"no-writes" => &mut self.no_writes,
            b"allow-oom" => &mut self.allow_oom,
            b"allow-stale" => &mut self.allow_stale,
            b"no-cluster" => &mut self.no_cluster,
            b"allow-cross-slot-keys" => &mut self.allow_cross_slot,
            _ => return false,
        };
        *flag = true;
        true
    }

    /// The names of those that are set.
    pub fn names(&self) -> Vec<&'static str> {
        let all = [
            (self.no_writes, "no-writes"),
            (self.allow_oom, "allow-oom"),
            (self.allow_stale, "allow-stale"),
            (self.no_cluster, "no-cluster"),
            (self.allow_cross_slot, "allow-cross-slot-keys"),
        ];
        all.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
    }
}

/// The flags of a script and its text behind the first line, whose end stays so that lines keep
/// their numbers.
///
/// # Errors
/// When the first line is one, but not of the kind.
pub fn of_script(body: &[u8]) -> Result<(Flags, &[u8]), CommandError> {
    if !body.starts_with(b"#!") {
        return Ok((Flags { is_silent: true, ..Flags::default() }, body));
    }
    let error = |words: String| CommandError::new(format!("ERR {words}"));
    let end = body.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| error("Invalid script shebang".to_owned()))?;
    let (line, rest) = body.split_at(end);
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match words.next() {
        Some(b"#!lua") => {}
        other => {
            let engine = shown(other.unwrap_or_default());
            return Err(error(format!("Unexpected engine in script shebang: {engine}")));
        }
    }
    let mut flags = Flags::default();
    for word in words {
        let Some(list) = word.strip_prefix(b"flags=") else {
            return Err(error(format!("Unknown lua shebang option: {}", shown(word))));
        };
        for name in list.split(|byte| *byte == b',').filter(|_| !list.is_empty()) {
            if !flags.add(name) {
                let name = shown(name);
                return Err(error(format!("Unexpected flag in script shebang: {name}")));
            }
        }
    }
    Ok((flags, rest))
}
