//! In which order windows are copied whose times only reading them has told.

use crate::source::Window;
use model::TimeRange;

/// Windows, the newest first. What stands in one unit stays together; so do units whose times overlap, as of
/// equal times the later one counts.
pub fn newest_first(units: Vec<Vec<Window>>) -> Vec<Window> {
    let range_of = |unit: &Vec<Window>| {
        let start = unit.iter().map(|one| one.range.start).min()?;
        let end = unit.iter().map(|one| one.range.end).max()?;
        Some(TimeRange::new(start, end))
    };
    let mut sorted: Vec<(TimeRange, usize)> =
        units.iter().enumerate().filter_map(|(at, unit)| Some((range_of(unit)?, at))).collect();
    sorted.sort_by_key(|(range, at)| (range.start, *at));
    let mut groups: Vec<(i64, Vec<usize>)> = Vec::new();
    for (range, at) in sorted {
        match groups.last_mut() {
            Some((end, group)) if range.start <= *end => {
                *end = range.end.max(*end);
                group.push(at);
            }
            _ => groups.push((range.end, vec![at])),
        }
    }
    let mut units: Vec<Option<Vec<Window>>> = units.into_iter().map(Some).collect();
    let mut found = Vec::new();
    for (_, mut group) in groups.into_iter().rev() {
        group.sort_unstable();
        for at in group {
            found.extend(units.get_mut(at).and_then(Option::take).unwrap_or_default());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_keeps_its_order() {
        let window = |name: &str, start, end| Window {
            name: name.to_string(),
            range: TimeRange::new(start, end),
            samples: None,
        };
        let units = vec![
            vec![window("a", 0, 9)],
            vec![window("c", 25, 30)],
            vec![window("d", 50, 60), window("e", 40, 49)],
            vec![window("b", 20, 26)],
            vec![],
        ];
        let names: Vec<String> = newest_first(units).into_iter().map(|one| one.name).collect();
        assert_eq!(names.concat(), "decba");
    }
}
