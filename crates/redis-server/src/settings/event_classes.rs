//! Classes of keyspace events, and the letters that name them.

use kv::keyspace as events;

/// Events are published on channels of keys.
pub const KEYSPACE_EVENTS: u32 = 1;
/// Events are published on channels of events.
pub const KEYEVENT_EVENTS: u32 = 1 << 1;

/// The letters of classes, in the order in which they are shown; `A` stands for those before the
/// last three.
const EVENT_LETTERS: &[(char, u32)] = &[
    ('g', events::EVENT_GENERIC),
    ('$', events::EVENT_STRING),
    ('l', events::EVENT_LIST),
    ('s', events::EVENT_SET),
    ('h', events::EVENT_HASH),
    ('z', events::EVENT_ZSET),
    ('x', events::EVENT_EXPIRED),
    ('e', events::EVENT_EVICTED),
    ('t', events::EVENT_STREAM),
    ('d', events::EVENT_MODULE),
];
const EVENT_LETTERS_BESIDE: &[(char, u32)] = &[
    ('K', KEYSPACE_EVENTS),
    ('E', KEYEVENT_EVENTS),
    ('m', events::EVENT_KEY_MISS),
    ('n', events::EVENT_NEW),
];

/// The classes that letters name; none if one of them names none.
pub fn parse_events(text: &str) -> Option<u32> {
    let mut classes = 0;
    for letter in text.chars() {
        let all = EVENT_LETTERS.iter().chain(EVENT_LETTERS_BESIDE);
        classes |= match letter {
            'A' => EVENT_LETTERS.iter().fold(0, |all, (_, class)| all | class),
            _ => all.filter(|(known, _)| *known == letter).map(|(_, class)| *class).next()?,
        };
    }
    Some(classes)
}

/// Letters of classes.
pub fn events_text(classes: u32) -> String {
    let all = EVENT_LETTERS.iter().fold(0, |all, (_, class)| all | class);
    let letters = |table: &[(char, u32)]| -> String {
        table.iter().filter(|(_, class)| classes & class != 0).map(|(letter, _)| *letter).collect()
    };
    let beside = letters(EVENT_LETTERS_BESIDE);
    match classes & all == all {
        true => format!("A{beside}"),
        false => letters(EVENT_LETTERS) + &beside,
    }
}
