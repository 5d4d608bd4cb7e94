//! Commands of Redis after 7.4, and of modules, that are unknown here: the error names the reason and
//! what to use instead, and the page of commands lists them.

/// Commands that came with one version.
pub struct LaterCommands {
    /// Names in lower case; one that ends with a star is the beginning of names.
    pub names: &'static [&'static str],
    /// The version of Redis, or the module.
    pub since: &'static str,
    /// What they are about.
    pub about: &'static str,
    /// What to use instead.
    pub instead: &'static str,
}

/// All of them.
#[rustfmt::skip] // a table
pub const LATER: &[LaterCommands] = &[
    LaterCommands {
        names: &[
            "vadd", "vcard", "vdim", "vemb", "vgetattr", "vinfo", "vismember", "vlinks", "vrandmember",
            "vrange", "vrem", "vsetattr", "vsim",
        ],
        since: "Redis 8.0", about: "vector sets", instead: "Quipu has none",
    },
    LaterCommands {
        names: &["xackdel"],
        since: "Redis 8.2", about: "acknowledges and removes entries of streams", instead: "use XACK and XDEL in MULTI",
    },
    LaterCommands {
        names: &["xdelex"],
        since: "Redis 8.2", about: "removes entries of streams, and what groups know of them", instead: "use XDEL and XACK in MULTI",
    },
    LaterCommands {
        names: &["delex"],
        since: "Redis 8.4", about: "removes a string if it has a value", instead: "use EVAL with GET and DEL",
    },
    LaterCommands {
        names: &["digest"],
        since: "Redis 8.4", about: "the hash of a string", instead: "use EVAL with redis.sha1hex",
    },
    LaterCommands {
        names: &["msetex"],
        since: "Redis 8.4", about: "sets several strings that expire", instead: "use SET with PX in MULTI",
    },
    LaterCommands {
        names: &["hotkeys"],
        since: "Redis 8.6", about: "the keys that cost most", instead: "use MONITOR for a while, or quipu kv analyze for the biggest keys",
    },
    LaterCommands {
        names: &["xcfgset"],
        since: "Redis 8.6", about: "settings of streams whose producers repeat entries", instead: "give entries IDs of your own",
    },
    LaterCommands {
        names: &["cf.*", "cms.*", "topk.*", "tdigest.*"],
        since: "RedisBloom", about: "sketches other than Bloom filters", instead: "Quipu has Bloom filters (BF.*) alone",
    },
    LaterCommands {
        names: &["json.*"],
        since: "RedisJSON", about: "documents", instead: "keep the text in a string or a hash",
    },
    LaterCommands {
        names: &["ft.*"],
        since: "RediSearch", about: "search", instead: "Quipu has no index on values of keys",
    },
];

/// The commands among which a name is, in any case.
pub fn find(name: &[u8]) -> Option<&'static LaterCommands> {
    let is_name = |known: &str| match known.strip_suffix('*') {
        Some(start) => name
            .get(..start.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes())),
        None => name.eq_ignore_ascii_case(known.as_bytes()),
    };
    LATER.iter().find(|later| later.names.iter().any(|known| is_name(known)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::registry;

    #[test]
    fn names_are_found_and_are_no_commands() {
        for (name, since) in
            [("VADD", "Redis 8.0"), ("Json.Get", "RedisJSON"), ("ft.", "RediSearch")]
        {
            assert_eq!(find(name.as_bytes()).map(|later| later.since), Some(since), "{name}");
        }
        assert!(find(b"vaddx").is_none() && find(b"f").is_none() && find(b"").is_none());
        for name in LATER.iter().flat_map(|later| later.names) {
            assert!(registry().named(name.as_bytes()).is_none(), "{name} is a command");
        }
    }
}
