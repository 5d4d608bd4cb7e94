//! What fuzzing feeds.

use super::{Limits, Parsed, Requests};

/// Reads anything as commands.
pub fn requests(bytes: &[u8]) {
    let limits = Limits { arguments_max: 1024, bulk_size_max: 1 << 20 };
    let (mut requests, mut rest) = (Requests::default(), bytes);
    while let Ok(Parsed::Command(size) | Parsed::Nothing(size)) = requests.parse(rest, &limits) {
        assert!(0 < size, "every command takes bytes");
        let total: usize = requests.arguments(rest).map(<[u8]>::len).sum();
        assert!(total <= rest.len(), "arguments are parts of what was sent");
        rest = rest.get(size..).unwrap_or_default();
    }
}
