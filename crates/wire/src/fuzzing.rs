//! What must hold for any bytes: one function per decoder, called by fuzz targets and by a test.
//!
//! None may panic or use memory out of proportion; what was taken must be consistent; what we
//! write must read back.

use crate::compression::{Encoding, decompress};
use crate::decoded::{Decoded, Start};
use crate::{
    Error, ExtraLabels, exposition, influx, json_lines, params, prom_json, remote_read,
    remote_write, vm_native,
};
use histogram::{Histogram, HistogramRow};
use model::{ExemplarRow, KeyDecoder as _, KeyHasher, LabelsBuilder};

/// Memory of the rows per byte of a body: a sample has at least two bytes in any protocol.
const ROWS_PER_BYTE: usize = 1;

/// Pieces of blocks of Prometheus' store: behind checksums that fit, so that their content is looked at.
pub fn fuzz_prometheus_block(data: &[u8]) {
    use crate::crc32c::crc32c;
    use crate::prometheus_block::{chunks, index, tombstones};
    let with_sum = |body: &[u8]| [body, &crc32c(body).to_be_bytes()].concat();
    let strings = ["a", "b", "c"];
    let mut body = u32::to_be_bytes(3).to_vec();
    strings.iter().for_each(|text| body.extend([&[1], text.as_bytes()].concat()));
    let section = [&u32::to_be_bytes(10)[..], &with_sum(&body)].concat();
    let symbols = index::Symbols::parse(section);
    assert!(symbols.is_ok());
    let series =
        symbols.and_then(|symbols| index::parse_series(data, crc32c(data).to_be_bytes(), &symbols));
    if let Ok(series) = series {
        assert!(series.chunks.len() <= data.len());
        assert!(series.chunks.iter().all(|one| one.first_ms <= one.last_ms));
    }
    let _ = index::Symbols::parse(data.to_vec());
    if let Some(contents) = data.first_chunk() {
        let _ = index::Contents::parse(contents, data.len() as u64);
    }
    match chunks::decode(&with_sum(data)) {
        Ok(chunks::Chunk::Samples(all)) => assert!(all.len() <= data.len() * 8),
        Ok(chunks::Chunk::Aggregates(all)) => {
            assert!(all.averages.len() + all.counter.len() <= data.len() * 8);
        }
        Ok(chunks::Chunk::Histograms(all)) => {
            let buckets = |one: &Histogram| one.positive.len() + one.negative.len();
            let count: usize = all.iter().map(|one| buckets(&one.histogram)).sum();
            assert!(count <= data.len() * 8, "each takes a bit");
        }
        Err(_) => {}
    }
    let _ = tombstones::parse(&[&[1, 0x30, 0xba, 0x30, 1], &with_sum(data)[..]].concat());
    if let Ok((labels, samples)) = json_lines::read_line(data) {
        assert!(samples.len() <= data.len() && labels.len() <= data.len());
    }
}

/// Checks one batch against its body.
fn check(decoded: &Decoded<'_>, body_size: usize) {
    let batch = &decoded.batch;
    assert!(batch.rows.len() <= body_size * ROWS_PER_BYTE);
    assert!(batch.values.len() <= body_size);
    assert!(batch.rows.capacity() <= 2 * body_size + 64);
    assert!(batch.values.capacity() <= 2 * body_size + 64);
    assert_eq!(decoded.counts.samples, batch.values.len() as u64);
    assert!(decoded.errors.kept().len() as u64 <= decoded.errors.count());
    let mut value_count = 0;
    for row in &batch.rows {
        assert_eq!(row.values_start as usize, value_count);
        value_count += batch.row_values(row).len();
        let key = batch.key(row);
        let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
        if batch.decoder.tags(key, &mut tags).is_err() {
            continue;
        }
        let Some(shape) = batch.shapes.get(row.shape as usize) else { continue };
        for field in &shape.fields {
            name.clear();
            if batch.decoder.metric_name(key, field, &mut name).is_ok() {
                assert!(!name.is_empty());
            }
        }
        assert!(tags.iter().all(|(name, value)| !name.is_empty() && !value.is_empty()));
    }
    assert_eq!(value_count, batch.values.len());
    check_exemplars(decoded, body_size);
}

fn check_exemplars(decoded: &Decoded<'_>, body_size: usize) {
    assert!(decoded.exemplars.len() <= body_size.min(model::limits::BATCH_EXEMPLARS_MAX));
    for ExemplarRow { row, exemplar, .. } in &decoded.exemplars {
        let chars = |(name, value): (&str, &str)| name.chars().count() + value.chars().count();
        let chars: usize = exemplar.labels.iter().map(chars).sum();
        assert!(chars <= model::limits::EXEMPLAR_CHARS_MAX);
        assert_eq!(row.timestamp, exemplar.timestamp);
        assert!(decoded.batch.key(row).len() <= body_size.saturating_mul(2));
    }
}

/// Checks the histograms of one batch: none has more than the request paid for.
fn check_histograms(decoded: &mut Decoded<'_>, body_size: usize) {
    let batch = decoded.histogram_batch();
    assert!(batch.rows.len() <= body_size);
    let mut size = 0;
    for row in &batch.rows {
        let Histogram { positive, negative, custom_bounds, .. } = &row.histogram;
        for buckets in [positive, negative] {
            assert!(buckets.is_sorted_by(|a, b| a.index < b.index));
            assert!(buckets.iter().all(|bucket| bucket.count.is_nan() || 0.0 <= bucket.count));
            size += buckets.capacity();
        }
        size += custom_bounds.capacity();
        assert!(!batch.key(row).is_empty() || row.key_size == 0);
    }
    assert!(size <= body_size);
}

/// Decodes batch by batch until the body is done; every batch must advance.
fn drain<'a>(body: &[u8], mut decode: impl FnMut(Start) -> Result<Decoded<'a>, Error>) {
    let mut start = Start::default();
    while let Ok(decoded) = decode(start) {
        check(&decoded, body.len());
        let Some(rest) = decoded.rest else { return };
        assert!(start.offset < rest.offset && start.line < rest.line);
        start = rest;
    }
}

fn extra() -> ExtraLabels {
    ExtraLabels::new(&[("db", "x")]).unwrap_or_default()
}

/// A dictionary that takes no long texts.
#[derive(Debug)]
struct ShortTexts;

impl influx::Texts for ShortTexts {
    fn number(&self, text: &str) -> Result<u32, String> {
        if text.len() < 8 {
            Ok(crate::narrow::body_offset(text.len()))
        } else {
            Err("too long".to_string())
        }
    }
}

/// Line protocol.
pub fn fuzz_influx(data: &[u8]) {
    let keys = influx::InfluxKeys::new(extra());
    let hasher = KeyHasher::new(1);
    for precision in [influx::Precision::Nanosecond, influx::Precision::Auto] {
        let options = influx::Options { precision, now: 1 };
        drain(data, |start| influx::decode(data, start, &options, &hasher, &keys));
    }
    let options = influx::Options { precision: influx::Precision::Hour, now: i64::MAX };
    let keys = keys.with_texts(Some(std::sync::Arc::new(ShortTexts))).with_long_integers();
    drain(data, |start| influx::decode(data, start, &options, &hasher, &keys));
    if let Ok(decoded) = influx::decode(data, Start::default(), &options, &hasher, &keys) {
        let text = influx::error_text(data, &decoded.errors, &[], 0, 1);
        assert!(text.len() <= 1000 + decoded.errors.kept().len() * 2000);
    }
}

/// Answers of InfluxQL.
pub fn fuzz_influx_answer(data: &[u8]) {
    let _ = influx::answer::read_answer(data);
    let mut texts = 0;
    let mut number_of = |text: &str| {
        texts += 1;
        (text.len() < 8).then_some(texts as f64)
    };
    if let Ok(parts) = influx::columns::read_columns(data, &mut number_of) {
        let series = parts.iter().flat_map(|part| &part.series);
        let columns = series.flat_map(|one| &one.columns);
        let points: usize = columns.map(|one| one.numbers.len() + one.texts.len()).sum();
        assert!(points <= data.len() / 2);
    }
}

/// Files of Graphite.
pub fn fuzz_whisper(data: &[u8]) {
    if let Ok(points) = crate::whisper::read(data) {
        assert!(points.len() <= data.len() / 12);
    }
}

/// Keys of RedisTimeSeries: a version, then words, each behind a byte that says what it is.
pub fn fuzz_redis_timeseries(data: &[u8]) {
    use crate::redis_timeseries::{VERSION_MAX, Word, read};
    let Some((version, mut rest)) = data.split_first() else { return };
    let mut next = || {
        let Some((kind, behind)) = rest.split_first() else { return Ok(None) };
        let size =
            if 200 <= *kind { 8 * (usize::from(*kind) - 199) } else { usize::from(*kind % 2) * 8 };
        let Some((bytes, behind)) = behind.split_at_checked(size) else { return Ok(None) };
        rest = behind;
        let word = bytes.first_chunk().map(|eight| u64::from_le_bytes(*eight));
        Ok(Some(match (kind, word) {
            (200.., _) => Word::Bytes(bytes.to_vec()),
            (_, None) => Word::Number(u64::from(kind / 2)),
            (100.., Some(word)) => Word::Double(f64::from_bits(word)),
            (_, Some(word)) => Word::Number(word),
        }))
    };
    let mut count = 0;
    let read = read(u16::from(*version) % (VERSION_MAX + 2), &mut next, &mut |_, samples| {
        assert!(samples.is_sorted_by_key(|one| one.millis) || *version % 11 < 2);
        count += samples.len();
        Ok::<(), Error>(())
    });
    assert!(count <= data.len() * 4, "each takes two bits");
    if let Ok(about) = read {
        assert!(about.labels.len() <= data.len());
    }
}

/// Lines and answers of OpenTSDB.
pub fn fuzz_opentsdb(data: &[u8]) {
    use crate::opentsdb::{answer, line};
    for text in data.split(|byte| *byte == b'\n') {
        if let Ok(line) = line::read_line(text) {
            assert!(!line.metric.is_empty() && 0 <= line.millis);
            let _ = line.labels();
        }
    }
    let mut count = 0;
    let _ = answer::read_series(data, &mut |one| {
        count += one.samples.len() + one.annotations.len();
        Ok::<(), Error>(())
    });
    assert!(count <= data.len());
    let _ = answer::read_names(data);
    let _ = answer::read_tsuids(data);
    let _ = answer::read_error(data);
}

/// Remote write 1.0, uncompressed.
pub fn fuzz_remote_write_v1(data: &[u8]) {
    let keys = remote_write::RemoteWriteKeys::new(extra());
    if let Ok(mut decoded) = remote_write::v1::decode(data, &KeyHasher::new(1), &keys) {
        check(&decoded, data.len());
        check_histograms(&mut decoded, data.len());
        assert!(decoded.batch.bytes.len() <= 2 * data.len());
    }
}

/// Remote write 2.0, uncompressed.
pub fn fuzz_remote_write_v2(data: &[u8]) {
    let keys = remote_write::RemoteWriteKeys::new(extra());
    if let Ok(mut decoded) = remote_write::v2::decode(data, &KeyHasher::new(1), &keys) {
        check(&decoded, data.len());
        check_histograms(&mut decoded, data.len());
    }
}

/// Requests of remote read, uncompressed.
pub fn fuzz_remote_read(data: &[u8]) {
    let Ok(request) = remote_read::ReadRequest::decode(data) else { return };
    assert!(request.queries.len() <= remote_read::QUERIES_MAX);
    for query in &request.queries {
        assert!(query.matchers.len() <= remote_read::MATCHERS_MAX);
    }
}

/// Answers of remote read; a chunk that was taken is written and read again.
pub fn fuzz_remote_read_answer(data: &[u8]) {
    use remote_read::{chunk, decode};
    let _ = decode::decode_samples(data);
    let _ = decode::decode_frame(data);
    for frame in decode::split_frames(data).unwrap_or_default() {
        let _ = decode::decode_frame(frame);
    }
    let _ = remote_read::histogram_chunk::decode_chunk(data);
    let _ = remote_read::histogram_chunk::decode_whole_chunk(data);
    let Ok(samples) = chunk::decode_chunk(data) else { return };
    for samples in samples.chunks(remote_read::CHUNK_SAMPLES_MAX) {
        let mut bytes = Vec::new();
        chunk::push_chunk(&mut bytes, samples);
        let again = chunk::decode_chunk(&bytes).unwrap_or_default();
        let bits =
            |sample: &remote_write::encode::MillisSample| (sample.millis, sample.value.to_bits());
        assert!(again.iter().map(bits).eq(samples.iter().map(bits)));
    }
}

/// Both exposition formats.
pub fn fuzz_exposition(data: &[u8]) {
    let keys = exposition::ExpositionKeys::new(extra());
    let hasher = KeyHasher::new(1);
    for format in [exposition::Format::Text, exposition::Format::OpenMetrics] {
        let options = exposition::Options { format, now: 1, created: exposition::Created::Starts };
        drain(data, |start| exposition::decode(data, start, &options, &hasher, &keys));
    }
}

/// JSON lines; what was taken is written and read again.
pub fn fuzz_json_lines(data: &[u8]) {
    let keys = json_lines::JsonKeys::new(ExtraLabels::none());
    let hasher = KeyHasher::new(1);
    drain(data, |start| json_lines::decode(data, start, &hasher, &keys));
    let Ok(mut decoded) = json_lines::decode(data, Start::default(), &hasher, &keys) else {
        return;
    };
    fuzz_json_histograms(&decoded.histogram_batch().rows);
    let timestamps: Vec<i64> = decoded.batch.rows.iter().map(|row| row.timestamp).collect();
    let mut out = Vec::new();
    let labels = model::Labels::from_pairs(&[("__name__", "a")]);
    let values = &decoded.batch.values;
    let times = json_lines::Times::plain(&timestamps);
    json_lines::LineWriter::new(3).push_series(&mut out, &labels, times, values);
    let Ok(again) = json_lines::decode(&out, Start::default(), &hasher, &keys) else { return };
    assert!(again.errors.is_empty());
    assert!(again.batch.rows.iter().map(|row| row.timestamp).eq(timestamps));
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&again.batch.values), bits(values));
}

/// What the blocks of VictoriaMetrics' native format have is bounded by their number, and written and read
/// again it is the same.
pub fn fuzz_vm_native(data: &[u8]) {
    let keys = vm_native::NativeKeys::new(ExtraLabels::none());
    let hasher = KeyHasher::new(1);
    let Ok(decoded) = vm_native::decode(data, Start::default(), &hasher, &keys) else { return };
    let batch = &decoded.batch;
    assert!(batch.rows.len() as u64 <= decoded.counts.lines * 16_384);
    assert_eq!(batch.rows.len(), batch.values.len());
    for row in &batch.rows {
        let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
        let key = batch.key(row);
        let is_named = keys.metric_name(key, "", &mut name).is_ok();
        assert!(!is_named || !name.is_empty());
        let _ = keys.tags(key, &mut tags);
    }
    let millis = |row: &model::Row| row.timestamp / model::sample::NANOS_PER_MILLI;
    let sample = |row: &model::Row| {
        let value = batch.row_values(row).first().copied().unwrap_or(0.0);
        remote_write::encode::MillisSample { millis: millis(row), value }
    };
    let samples: Vec<_> = batch.rows.iter().map(sample).collect();
    // Blocks of other series begin anew with times.
    let end = samples.windows(2).position(|pair| pair[1].millis < pair[0].millis);
    let samples = samples.get(..end.map_or(samples.len(), |at| at + 1)).unwrap_or_default();
    let mut out = Vec::new();
    vm_native::encode::push_head(&mut out, i64::MIN, i64::MAX);
    let labels = model::Labels::from_pairs(&[("__name__", "a")]);
    let heads = vm_native::encode::Heads::Current;
    let left_out = vm_native::encode::push_series(&mut out, heads, &labels, samples);
    let Ok(again) = vm_native::decode(&out, Start::default(), &hasher, &keys) else { return };
    assert!(again.errors.is_empty());
    let is_all = again.rest.is_some()
        || again.batch.rows.len() as u64 + left_out.nans == samples.len() as u64;
    assert!(is_all);
}

/// Histograms of lines are written and read again.
fn fuzz_json_histograms(rows: &[HistogramRow]) {
    let timestamps: Vec<i64> = rows.iter().map(|row| row.timestamp).collect();
    let histograms: Vec<Histogram> = rows.iter().map(|row| row.histogram.clone()).collect();
    let labels = model::Labels::from_pairs(&[("__name__", "a")]);
    let mut out = Vec::new();
    let writer = json_lines::LineWriter::new(2);
    let times = json_lines::Times::plain(&timestamps);
    writer.push_histograms(&mut out, &labels, times, &histograms);
    let keys = json_lines::JsonKeys::new(ExtraLabels::none());
    let again = json_lines::decode(&out, Start::default(), &KeyHasher::new(1), &keys);
    let again = again.map_or(Vec::new(), |decoded| decoded.histograms);
    assert_eq!(again.len(), rows.len());
    for (a, b) in again.iter().zip(rows) {
        assert_eq!(a.timestamp, b.timestamp);
        // As text, in which a NaN equals itself.
        assert_eq!(format!("{:?}", a.histogram), format!("{:?}", b.histogram));
    }
}

/// Every compression, with a small limit.
pub fn fuzz_compression(data: &[u8]) {
    const SIZE_MAX: usize = 1 << 16;
    let mut buffer = Vec::new();
    for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Zstd, Encoding::Snappy] {
        if let Ok(bytes) = decompress(encoding, data, SIZE_MAX, &mut buffer) {
            assert!(bytes.len() <= SIZE_MAX);
        }
        assert!(buffer.capacity() <= 4 * SIZE_MAX);
    }
}

/// Times and durations of URLs.
pub fn fuzz_params(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = params::parse_time(&text, 1_700_000_000_000_000_000);
    let _ = params::parse_duration(&text);
}

/// Strings and numbers of answers.
pub fn fuzz_prom_json(data: &[u8]) {
    let mut out = Vec::new();
    prom_json::push_string(&mut out, &String::from_utf8_lossy(data));
    assert!(2 <= out.len() && out.iter().all(|byte| 0x20 <= *byte));
    for bytes in data.as_chunks::<8>().0 {
        let value = f64::from_bits(u64::from_le_bytes(*bytes));
        for push in [prom_json::push_value, prom_json::number::push_exposition_value] {
            out.clear();
            push(&mut out, value);
            let read: Option<f64> = std::str::from_utf8(&out).ok().and_then(|t| t.parse().ok());
            let is_same = read.is_some_and(|read| read.to_bits() == value.to_bits());
            assert!(is_same || value.is_nan());
        }
    }
}

/// A decoder's function and what its inputs look like.
pub type Target = (&'static str, fn(&[u8]), &'static [&'static [u8]]);

/// All of the above, with examples to start from.
pub const TARGETS: &[Target] = &[
    ("influx", fuzz_influx, &[
        b"cpu,host=a,re\\ gion=b\\,c a=1i,b=2.5,c=t,d=\"x\\\"\n\" 1451606400000000000\n#c\n",
        b"m a=1u,time=3,a=2 5\r\nm b=.5e-3,c=F\n,x y\nm  a=\"\n",
    ]),
    ("influx_answer", fuzz_influx_answer, &[
        br#"{"results":[{"statement_id":0,"series":[{"name":"a","tags":{"h":"x"},"columns":["time","v"],"values":[[1,1.5],[2,null]]}]}]}"#,
    ]),
    ("whisper", fuzz_whisper, &[
        b"\0\0\0\x01\0\0\0\x0a\0\0\0\0\0\0\0\x01\0\0\0\x1c\0\0\0\x0a\0\0\0\x01\0\0\0\x0a?\xf0\0\0\0\0\0\0",
    ]),
    ("redis_timeseries", fuzz_redis_timeseries, &[
        // Of version 2, without labels and rules, with a chunk of one sample; and of version 0.
        b"\x02\xc8abcdefgh\x02\x02\x02\x02\x65\0\0\0\0\0\0\0\0\x02\0\0\0\x02\x10\x02\0\0\x02\x02\0\0\0\0\xc8\0\0\0\0\0\0\0\0",
        b"\0\xc8abcdefgh\x02\x02\0\0\x04\x02\x65\0\0\0\0\0\0\xf0?\x04\x65\0\0\0\0\0\0\0\0",
    ]),
    ("opentsdb", fuzz_opentsdb, &[
        b"sys.cpu 1356998400 42.5 host=a dc=lga\nm 1356998400001 -1E3 t=1\n",
        br#"[{"metric":"a","tags":{"b":"c"},"aggregateTags":[],"annotations":[{"tsuid":"01","startTime":5}],"dps":{"1788048000000":0.1,"1":"NaN"}}]"#,
        br#"[{"metric":"a","tags":{},"dps":[[1788048000001,-1.5E3],[2,null]]}]"#,
        br#"{"error":{"code":413,"message":"x"},"results":[{"tsuid":"01"}]}"#,
    ]),
    ("remote_write_v1", fuzz_remote_write_v1, &[
        b"\x0a\x21\x0a\x0d\x0a\x08__name__\x12\x01a\x12\x10\x09\0\0\0\0\0\0\xf0?\x10\x80\x80\x80\x80\x80\x04",
        b"\x1a\x0a\x08\x01\x12\x01a\x22\x01b*\x00",
        b"\x0a\x21\x0a\x0d\x0a\x08__name__\x12\x01a\x22\x10\x08\x03\x20\x12\x5a\x04\x08\x04\x10\x02\x62\x02\x04\x01\x78\x05",
        b"\x0a\x24\x22\x22\x11\0\0\0\0\0\0\xf0?\x42\x02\x10\x01\x52\x08\0\0\0\0\0\0\xf0?\x82\x01\x08\0\0\0\0\0\0\xf0?",
        b"\x0a\x24\x0a\x0d\x0a\x08__name__\x12\x01a\x1a\x13\x0a\x06\x0a\x01t\x12\x01x\x11\0\0\0\0\0\0\xf0?\x18\x05",
    ]),
    ("remote_write_v2", fuzz_remote_write_v2, &[
        b"\x22\0\x22\x08__name__\x22\x01a\x2a\x16\x0a\x02\x01\x02\x12\x0b\x09\0\0\0\0\0\0\xf0?\x10\x01*\x03\x08\x01\x18",
        b"\x22\0\x22\x08__name__\x22\x01a\x2a\x15\x0a\x02\x01\x02\x22\x0f\x0a\x02\x01\x02\x11\0\0\0\0\0\0\xf0?\x18\x05",
    ]),
    ("remote_read", fuzz_remote_read, &[
        b"\x0a\x14\x08\x01\x10\x05\x1a\x0e\x08\x02\x12\x08__name__\x1a\0\x12\x02\x01\0",
    ]),
    ("remote_read_answer", fuzz_remote_read_answer, &[
        b"\0\x04\xd0\x0f\x3f\xf0\0\0\0\0\0\0\xe8\x07\x10\0\x08",
        b"\x0a\x10\x0a\x06\x0a\x01a\x12\x01b\x12\x06\x22\x04\0\x01\x02\x03",
    ]),
    ("exposition", fuzz_exposition, &[
        b"# HELP a b\\n\n# TYPE a counter\na{b=\"c\\\"}\",d=\"e\"} 1.5e3 1000 # {t=\"x\"} 1\n# EOF\n",
        b"{\"a.b\",\"c\"=\"d\"} NaN\nx +Inf -5\n",
    ]),
    ("json_lines", fuzz_json_lines, &[
        b"{\"metric\":{\"__name__\":\"a\",\"b\":\"\\u00e9\"},\"values\":[1,null,\"NaN:7ff0000000000002\"],\"timestamps\":[1,2.5,-3]}\n",
        b"{\"metric\":{\"__name__\":\"a\"},\"histograms\":[{\"schema\":3,\"count\":4,\"sum\":0.5,\"zero_count\":1,\"zero_threshold\":1e-5,\"reset_hint\":\"gauge\",\"positive\":[[-2,1],[0,2]],\"negative\":[[5,1]]},{\"schema\":-53,\"positive\":[[2,1]],\"custom_bounds\":[0.5,1]}],\"histogram_timestamps\":[1,2.5]}\n",
    ]),
    ("vm_native", fuzz_vm_native, &[
        // Two rows of a metric with a label, by a step each, of both heads.
        b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\0\0\0\x06a\x01b\x01c\x01\0\0\0\x0c\x02\x04\x06\x02\x01\x02\x02\x40\x01\x02\x01\x04",
        b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\0\0\0\x02a\x01\0\0\0\x0a\x02\x06\x03\x01\x06\x05\x02\x02\x06\x02\x02\x04",
    ]),
    ("compression", fuzz_compression, &[
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b\x04\0\x43\xbe\xb7\xe8\x01\0\0\0",
        b"\x28\xb5\x2f\xfd\x20\x01\x09\0\0a",
        b"\x02\x04ab",
        b"\xff\x06\0\0sNaPpY",
    ]),
    ("params", fuzz_params, &[b"2015-07-01T20:10:30.781+02:00", b"now-1h30m", b"1435781430.781"]),
    ("prom_json", fuzz_prom_json, &[b"a\"\\\n\x01\xc3\xa9", b"\0\0\0\0\0\0\xf0?"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;

    /// Changes, copies, cuts and doubles pieces of the bytes.
    fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
        for _ in 0..1 + random.below(8) {
            let at = random.below(bytes.len() as u64 + 1) as usize;
            let to = (at + random.below(20) as usize).min(bytes.len());
            match random.below(6) {
                0 if at < bytes.len() => bytes[at] = random.next() as u8,
                1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
                2 => bytes.insert(at, *random.pick(b"\\\"=, \n\r#{}0-.ei\xff\0\x80")),
                3 => drop(bytes.drain(at..to)),
                4 => {
                    let piece = bytes[at..to].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => bytes.truncate(bytes.len() - (to - at)),
            }
        }
    }

    #[test]
    fn random_and_mutated_bytes() {
        let mut random = Random::seeded(0x5eed);
        for (name, target, examples) in TARGETS {
            for round in 0..4_000 {
                let mut bytes = if round % 8 == 0 {
                    (0..random.below(200)).map(|_| random.next() as u8).collect()
                } else {
                    random.pick(examples).repeat(1 + random.below(3) as usize)
                };
                mutate(&mut bytes, &mut random);
                let result = std::panic::catch_unwind(|| target(&bytes));
                assert!(result.is_ok(), "{name} {:?}", bytes.escape_ascii().to_string());
            }
        }
    }
}
