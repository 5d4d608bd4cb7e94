//! Symbols of a request: the texts that its series refer to by number.

use crate::Error;
use crate::protobuf::Message;

pub(super) fn symbol<'a>(symbols: &[&'a [u8]], id: u32) -> Result<&'a [u8], Error> {
    let found = symbols.get(id as usize).copied();
    found.ok_or(Error::malformed("remote write 2.0", 0, "a reference to an existing symbol"))
}

/// A symbol without the length before it.
pub(super) fn text_of(sized: &[u8]) -> &[u8] {
    let mut message = Message::new(sized);
    let size = message.varint().map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX));
    sized.get(sized.len().saturating_sub(size)..).unwrap_or_default()
}
