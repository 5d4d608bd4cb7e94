//! Lines as clients read them: the counterpart of the writer.

use super::decode::timestamp;
use super::scan::{Fault, Scan};
use super::value::value;
use crate::Error;
use crate::remote_write::encode::MillisSample;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, LabelsBuilder};

/// The labels and numbers of one line, as `/api/v1/export` sends it; other members are left out.
///
/// # Errors
/// The line is none.
pub fn read_line(line: &[u8]) -> Result<(Labels, Vec<MillisSample>), Error> {
    let mut labels = LabelsBuilder::new();
    let (mut values, mut times): (Vec<f64>, Vec<i64>) = (Vec::new(), Vec::new());
    // An error that a server puts behind good lines is an object, too.
    let (mut has_metric, mut has_values, mut has_times) = (false, false, false);
    let mut scan = Scan::new(line);
    let read = scan.members(|scan, name| match name {
        "metric" => {
            has_metric = true;
            scan.members(|scan, name| {
                labels.push(name, &scan.string()?);
                Ok(())
            })
        }
        "values" => {
            has_values = true;
            scan.elements(|scan| {
                values.push(value(scan)?);
                Ok(())
            })
        }
        "timestamps" => {
            has_times = true;
            scan.elements(|scan| {
                times.push(timestamp(scan)?.div_euclid(NANOS_PER_MILLI));
                Ok(())
            })
        }
        "histograms" => {
            // Of those other readers know more.
            has_values = true;
            has_times = true;
            scan.skip(0)
        }
        _ => scan.skip(0),
    });
    let bad = |Fault { offset, expected }| Error::malformed("JSON line", offset, expected);
    read.map_err(bad)?;
    if scan.peek().is_some() {
        return Err(bad(Fault { offset: scan.at, expected: "the line's end" }));
    }
    if !(has_metric && has_values && has_times) {
        return Err(bad(Fault { offset: 0, expected: "a metric, values and timestamps" }));
    }
    if values.len() != times.len() {
        return Err(bad(Fault { offset: 0, expected: "as many timestamps as values" }));
    }
    let samples = times.into_iter().zip(values);
    let samples = samples.map(|(millis, value)| MillisSample { millis, value }).collect();
    Ok((labels.finish(), samples))
}
