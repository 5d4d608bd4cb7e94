//! Plots as SVG: samples a second and resident memory over time, a line per contender; and bars.

use super::spread::{number, spread};
use super::{Chart, Run};
use crate::load::report::TimelineRow;
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const CHART_HEIGHT: f64 = 220.0;
const MARGIN_LEFT: f64 = 80.0;
const MARGIN_TOP: f64 = 40.0;
const COLORS: [&str; 6] = ["#0b6e4f", "#c8553d", "#3d5a98", "#8a6d00", "#7a3b8f", "#555555"];
const BAR_HEIGHT: f64 = 14.0;
const LABEL_WIDTH: f64 = 230.0;

/// One line of a chart.
struct Line<'a> {
    name: &'a str,
    points: Vec<(f64, f64)>,
}

/// The charts of the first run of each contender; `None` when no run has a timeline.
pub(super) fn timelines(runs: &[Run]) -> Option<String> {
    let firsts = runs.iter().filter(|run| run.repeat == 1 && run.outcome.timeline.len() > 2);
    let firsts = firsts.collect::<Vec<_>>();
    if firsts.is_empty() {
        return None;
    }
    let height = 2.0 * (CHART_HEIGHT + 2.0 * MARGIN_TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let rates = lines(&firsts, |row| row.samples_per_second);
    put_chart(&mut svg, "samples/s", 0.0, &rates);
    let memory = lines(&firsts, |row| row.rss_bytes as f64 / f64::from(1 << 20));
    put_chart(&mut svg, "RSS, MiB", height / 2.0, &memory);
    svg.push_str("</svg>\n");
    Some(svg)
}

fn lines<'a>(runs: &[&'a Run], value: fn(&TimelineRow) -> f64) -> Vec<Line<'a>> {
    let line = |run: &&'a Run| Line {
        name: &run.contender,
        points: run.outcome.timeline.iter().map(|row| (row.seconds, value(row))).collect(),
    };
    runs.iter().map(line).collect()
}

fn put_chart(svg: &mut String, title: &str, top: f64, lines: &[Line<'_>]) {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let x_max = points().map(|point| point.0).fold(1.0, f64::max);
    let y_max = points().map(|point| point.1).fold(1.0, f64::max) * 1.05;
    let (left, right) = (MARGIN_LEFT, WIDTH - 20.0);
    let (low, high) = (top + MARGIN_TOP + CHART_HEIGHT, top + MARGIN_TOP);
    let place =
        |(x, y): &(f64, f64)| (left + x / x_max * (right - left), low - y / y_max * (low - high));
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"{}\">{title}</text>", top + 20.0);
    for tick in 0..=4 {
        let share = f64::from(tick) / 4.0;
        let (x, y) = place(&(x_max * share, y_max * share));
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0}</text>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.0} s</text>",
            left - 6.0,
            y + 4.0,
            y_max * share,
            low + 18.0,
            x_max * share
        );
    }
    for (idx, line) in lines.iter().enumerate() {
        let color = COLORS[idx % COLORS.len()];
        let path = line.points.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}"));
        let path = path.collect::<Vec<_>>().join(" ");
        let x = right - 160.0 * (lines.len() - idx) as f64;
        let _ = writeln!(
            svg,
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\
             <text x=\"{x}\" y=\"{}\" fill=\"{color}\">{}</text>",
            top + 20.0,
            line.name
        );
    }
}

/// A bar chart on a logarithmic axis, for figures that lie far apart; `None` without any value.
pub(super) fn bars(chart: &Chart, names: &[&str], runs: &[Run]) -> Option<String> {
    let values = |figure: &str| {
        let value = |name: &&str| spread(name, figure, runs).map(|spread| spread.median);
        names.iter().map(value).collect::<Vec<_>>()
    };
    let groups = chart.groups.iter().map(|(label, figure)| (label, values(figure)));
    let groups = groups.collect::<Vec<_>>();
    let known = || groups.iter().flat_map(|(_, values)| values.iter().flatten());
    let positive = || known().copied().filter(|value| *value > 0.0);
    let (low, high) = (positive().fold(f64::MAX, f64::min), positive().fold(0.0, f64::max));
    if high == 0.0 {
        return None;
    }
    // The axis starts a bit below the smallest value, so that it has a bar too.
    let (low, high) = ((low / 2.0).log10(), high.log10());
    let group_height = BAR_HEIGHT * names.len() as f64 + 10.0;
    let height = MARGIN_TOP + 20.0 + group_height * groups.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\">{}; logarithmic axis</text>\n",
        escape(&chart.title)
    );
    for (idx, name) in names.iter().enumerate() {
        let (x, color) = (10.0 + 130.0 * idx as f64, COLORS[idx % COLORS.len()]);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"38\" fill=\"{color}\">{name}</text>");
    }
    for (group, (label, values)) in groups.iter().enumerate() {
        let top = MARGIN_TOP + 10.0 + group_height * group as f64;
        let middle = top + group_height / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            LABEL_WIDTH - 8.0,
            escape(label)
        );
        for (idx, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let share = ((value.max(1e-12).log10() - low) / (high - low).max(1e-9)).clamp(0.0, 1.0);
            let width = share * (WIDTH - LABEL_WIDTH - 90.0);
            put_bar(&mut svg, idx, top + BAR_HEIGHT * idx as f64, width, *value);
        }
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn put_bar(svg: &mut String, contender: usize, top: f64, width: f64, value: f64) {
    let color = COLORS[contender % COLORS.len()];
    let _ = writeln!(
        svg,
        "<rect x=\"{LABEL_WIDTH}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{}\" \
         fill=\"{color}\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\">{}</text>",
        BAR_HEIGHT - 2.0,
        LABEL_WIDTH + width + 4.0,
        top + BAR_HEIGHT - 4.0,
        number(value)
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
