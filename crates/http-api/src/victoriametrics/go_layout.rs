//! Layouts of times as Go writes them: the moment `2006-01-02 15:04:05` in another form.

use model::Timestamp;

/// Elements of a layout and what they are for `strptime`; longer ones come first.
const ELEMENTS: &[(&str, &str)] = &[
    ("January", "%B"),
    ("Jan", "%b"),
    ("Monday", "%A"),
    ("Mon", "%a"),
    ("MST", "%Z"),
    ("2006", "%Y"),
    ("Z07:00", "%:z"),
    ("-07:00", "%:z"),
    ("Z0700", "%z"),
    ("-0700", "%z"),
    ("002", "%j"),
    ("01", "%m"),
    ("02", "%d"),
    ("03", "%I"),
    ("04", "%M"),
    ("05", "%S"),
    ("06", "%y"),
    ("15", "%H"),
    ("PM", "%p"),
    ("pm", "%p"),
    ("_2", "%e"),
    ("1", "%m"),
    ("2", "%d"),
    ("3", "%I"),
    ("4", "%M"),
    ("5", "%S"),
];

/// A layout, as `strptime` wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GoLayout {
    format: String,
    has_zulu: bool,
}

impl GoLayout {
    /// Reads a layout.
    pub fn parse(layout: &str) -> Result<GoLayout, String> {
        let (mut format, mut rest) = (String::new(), layout);
        while let Some(character) = rest.chars().next() {
            let fraction = rest.strip_prefix(['.', ',']).map(|digits| {
                digits.bytes().take_while(|byte| matches!(byte, b'0' | b'9')).count()
            });
            if let Some(count) = fraction.filter(|count| 0 < *count && format.ends_with("%S")) {
                format.push_str("%.f");
                rest = &rest[1 + count..];
                continue;
            }
            match ELEMENTS.iter().find(|(element, _)| rest.starts_with(element)) {
                Some((element, directive)) => {
                    format.push_str(directive);
                    rest = &rest[element.len()..];
                }
                None => {
                    format.push_str(if character == '%' { "%" } else { "" });
                    format.push(character);
                    rest = &rest[character.len_utf8()..];
                }
            }
        }
        match format.contains("%Y") || format.contains("%y") {
            true => Ok(GoLayout { format, has_zulu: layout.contains("Z07") }),
            false => Err(format!("the layout {layout:?} has no year; write 2006-01-02 15:04:05")),
        }
    }

    /// The moment that a text says, in UTC where it says no zone.
    pub fn read(&self, text: &str) -> Option<Timestamp> {
        let with_offset = text.strip_suffix('Z').filter(|_| self.has_zulu);
        let zero = if self.format.contains("%:z") { "+00:00" } else { "+0000" };
        let text = with_offset.map_or(text.to_string(), |text| format!("{text}{zero}"));
        // Go knows no zone by its abbreviation but UTC.
        let format = self.format.replace("%Z", "UTC");
        let text = text.replace("GMT", "UTC");
        let mut found = jiff::fmt::strtime::parse(&format, &text).ok()?;
        if found.hour().is_none() {
            found.set_hour(Some(0)).ok()?;
        }
        let civil = found.to_datetime().ok()?;
        let offset = found.offset().unwrap_or(jiff::tz::Offset::UTC);
        let moment = offset.to_timestamp(civil).ok()?;
        i64::try_from(moment.as_nanosecond()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let expected = 1_709_207_500_000_000_000;
        for (layout, text, expected) in [
            ("2006-01-02 15:04:05", "2024-02-29 11:51:40", Some(expected)),
            ("2006-01-02T15:04:05Z07:00", "2024-02-29T11:51:40Z", Some(expected)),
            ("2006-01-02T15:04:05Z07:00", "2024-02-29T12:51:40+01:00", Some(expected)),
            ("2006-01-02 15:04:05 -0700", "2024-02-29 12:51:40 +0100", Some(expected)),
            ("2006-01-02 15:04:05.000", "2024-02-29 11:51:40.250", Some(expected + 250_000_000)),
            ("02/Jan/2006:15:04:05", "29/Feb/2024:11:51:40", Some(expected)),
            ("Mon, 02 Jan 2006 15:04:05 MST", "Thu, 29 Feb 2024 11:51:40 UTC", Some(expected)),
            ("1/2/2006 3:04:05 PM", "2/29/2024 11:51:40 AM", Some(expected)),
            ("2006-01-02", "2024-02-29", Some(1_709_164_800_000_000_000)),
            ("2006-01-02", "29.02.2024", None),
            ("2006-01-02", "", None),
        ] {
            let parsed = GoLayout::parse(layout).expect(layout);
            assert_eq!(parsed.read(text), expected, "{layout} {text} {parsed:?}");
        }
        assert!(GoLayout::parse("15:04").is_err());
    }
}
