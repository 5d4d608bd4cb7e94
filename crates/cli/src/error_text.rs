//! Text of an error and its causes.

/// The error and its causes. A cause whose text is within the text before it is left out: many errors
/// print their cause themselves.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn each_cause_is_said_once() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let said = full().to_string();
        let file = || vfs::Error::new("append", std::path::Path::new("/d/log"), full());
        let opening = |error: store::Error| anyhow::Error::new(error).context("cannot open");
        let expected = format!("cannot open: append /d/log: {said}");
        assert_eq!(sentence(&opening(store::Error::Io(file()))), expected);
        assert_eq!(sentence(&opening(store::Error::Wal(wal::Error::Io(file())))), expected);
        let read = anyhow::Error::new(full()).context("file.progress").context("export");
        assert_eq!(sentence(&read), format!("export: file.progress: {said}"));
    }
}
