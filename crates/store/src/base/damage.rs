//! The list of damage, which is bounded: what is known to be missing or rotten.
//!
//! ```text
//! who meets it: readers, merges, the scrub, the start ──note──► list ──► status, metrics, log lines
//!                                                                └─ flush, background ─► DATA/damage
//! ```
//!
//! It is told, not asked: whether an answer is whole is decided by who reads, each time anew. The file
//! makes the list outlive a restart; it is described in `docs/format/damage.md`. An entry leaves when
//! its partition is gone, when no manifest names its file any more, or, of a side file, when a
//! start reads it and what was set aside of it is gone.

use crate::base::directory::side_file::{SideFile, read_twice};
use crate::base::locks::lock;
use crate::base::period::{PartitionLength, Period};
use crate::{Error, Result};
use codec::{Reader, put_i64_zigzag, put_varint};
use model::TimeRange;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use vfs::Vfs;

/// The file's name.
pub const FILE_NAME: &str = "damage";
const MAGIC: &[u8; 8] = b"QPDAMAG1";
/// Entries at most; what is found beyond them is said by who meets it, and not kept.
pub const ENTRIES_MAX: usize = 1024;
/// Entries of one file at most: the last of them stands for all that follow.
const ENTRIES_PER_FILE_MAX: usize = 32;
/// Bytes of a text in the file.
const TEXT_SIZE_MAX: usize = 4096;

/// What is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamagePlace {
    /// A page of a part: samples of some series for some time.
    Page,
    /// A part that cannot be opened, or is gone.
    Part,
    /// A segment of an index: series of a partition.
    Index,
    /// A partition that cannot be opened.
    Partition,
    /// Metadata, exemplars, this list.
    SideFile,
    /// The log.
    Log,
}

impl DamagePlace {
    /// All there are.
    pub const ALL: [DamagePlace; 6] = [
        DamagePlace::Page,
        DamagePlace::Part,
        DamagePlace::Index,
        DamagePlace::Partition,
        DamagePlace::SideFile,
        DamagePlace::Log,
    ];

    /// The word for it, as metrics have it.
    pub fn word(self) -> &'static str {
        match self {
            DamagePlace::Page => "page",
            DamagePlace::Part => "part",
            DamagePlace::Index => "index",
            DamagePlace::Partition => "partition",
            DamagePlace::SideFile => "side-file",
            DamagePlace::Log => "log",
        }
    }
}

/// One thing that is missing or rotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Whose partition it is, when it is one's.
    pub period: Option<Period>,
    /// Path in the store's directory.
    pub file: String,
    /// What is damaged.
    pub place: DamagePlace,
    /// Whose samples are missing; the whole partition where that is not known.
    pub span: TimeRange,
    /// How many series are touched, if that is known.
    pub series: Option<u64>,
    /// How many samples are missing, if that is known.
    pub samples: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// Wall clock when it was first noticed; the list fills it in.
    pub noticed_ns: i64,
}

impl Damage {
    /// Damage in a file of a partition.
    pub fn of_partition(period: Period, place: DamagePlace, file: String, what: String) -> Damage {
        let span = period.range();
        Damage { period: Some(period), span, ..Damage::of_store(place, file, what) }
    }

    /// Damage in a file that belongs to no partition.
    pub fn of_store(place: DamagePlace, file: String, what: String) -> Damage {
        Damage {
            period: None,
            file,
            place,
            span: TimeRange::ALL,
            series: None,
            samples: None,
            what,
            noticed_ns: 0,
        }
    }

    /// Whether both are the same thing, whenever it was noticed.
    fn is(&self, other: &Damage) -> bool {
        self.place == other.place && self.file == other.file && self.what == other.what
    }

    /// What an answer says that lacks it.
    pub fn warning(&self) -> String {
        format!("part of the answer is missing: {}", self.sentence())
    }

    /// A sentence for people: what is damaged, which time that touches, what to do.
    pub fn sentence(&self) -> String {
        if self.samples == Some(0) {
            return format!(
                "{} is damaged ({}), and nothing is missing for it",
                self.file, self.what
            );
        }
        let touched = match self.place {
            DamagePlace::Page | DamagePlace::Part => "samples",
            DamagePlace::Index => "series with samples",
            DamagePlace::Partition => "everything",
            DamagePlace::SideFile | DamagePlace::Log => "what it held",
        };
        let time = match self.period {
            None => String::new(),
            Some(_) => format!(" from {} to {}", rfc3339(self.span.start), rfc3339(self.span.end)),
        };
        format!(
            "{} is damaged ({}), so {touched}{time} may be left \
             out; `quipu verify` says more, `quipu verify --repair` mends what can be mended",
            self.file, self.what
        )
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.place as u64);
        put_optional(out, self.period.map(|period| codec::zigzag(period.code())));
        put_text(out, &self.file);
        put_i64_zigzag(out, self.span.start);
        put_i64_zigzag(out, self.span.end);
        put_optional(out, self.series);
        put_optional(out, self.samples);
        put_text(out, &self.what);
        put_i64_zigzag(out, self.noticed_ns);
    }

    fn decode(reader: &mut Reader<'_>) -> std::result::Result<Damage, codec::Error> {
        let place = reader.varint()?;
        let place = usize::try_from(place).ok().and_then(|idx| DamagePlace::ALL.get(idx));
        let place = *place.ok_or_else(|| reader.corrupt("a known place"))?;
        let period = match optional(reader)? {
            None => None,
            Some(number) => {
                let period = Period::from_code(codec::unzigzag(number));
                Some(period.ok_or_else(|| reader.corrupt("a partition"))?)
            }
        };
        Ok(Damage {
            place,
            period,
            file: text(reader)?,
            span: TimeRange::new(reader.i64_zigzag()?, reader.i64_zigzag()?),
            series: optional(reader)?,
            samples: optional(reader)?,
            what: text(reader)?,
            noticed_ns: reader.i64_zigzag()?,
        })
    }
}

fn put_optional(out: &mut Vec<u8>, number: Option<u64>) {
    put_varint(out, u64::from(number.is_some()));
    if let Some(number) = number {
        put_varint(out, number);
    }
}

fn optional(reader: &mut Reader<'_>) -> std::result::Result<Option<u64>, codec::Error> {
    match reader.varint()? {
        0 => Ok(None),
        1 => reader.varint().map(Some),
        _ => Err(reader.corrupt("a number or none")),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(TEXT_SIZE_MAX)];
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn text(reader: &mut Reader<'_>) -> std::result::Result<String, codec::Error> {
    let size = reader.varint_size(TEXT_SIZE_MAX)?;
    let bytes = reader.slice(size)?.to_vec();
    String::from_utf8(bytes).map_err(|_| reader.corrupt("UTF-8"))
}

/// A moment as `2024-10-04T00:00:00Z`.
pub(crate) fn rfc3339(timestamp: i64) -> String {
    let seconds = timestamp.div_euclid(model::sample::NANOS_PER_SECOND);
    let second = seconds.rem_euclid(86_400);
    let day = PartitionLength::Day.of(timestamp).name();
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{day}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The list.
pub struct DamageList {
    /// Of the store.
    dir: PathBuf,
    inner: Mutex<Inner>,
    /// Held by the one who writes the file: flush and scrub may both want to.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Inner {
    entries: Vec<Entry>,
    /// Ever noticed, earlier runs of the program included.
    noticed_total: u64,
    /// When a scrub last came to its end, wall clock.
    scrubbed_ns: Option<i64>,
    /// Entries that nobody has taken yet to tell people.
    news: Vec<Damage>,
    is_dirty: bool,
}

struct Entry {
    damage: Damage,
    /// Whether it was met since the store was opened, not only read from the file.
    is_met: bool,
}

impl DamageList {
    /// An empty list of the store in `dir`.
    pub fn new(dir: &Path) -> DamageList {
        DamageList { dir: dir.to_path_buf(), inner: Mutex::default(), writing: Mutex::default() }
    }

    /// Reads the list of a store's directory. One that is rotten is begun anew, and says so in its
    /// first entry.
    ///
    /// # Errors
    /// On I/O errors, and for the list of a newer program.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<DamageList> {
        let list = DamageList::new(dir);
        let file = list.file();
        let read = match read_twice(&|| file.read(vfs)) {
            Ok(None) => return Ok(list),
            Ok(Some(body)) => decode(&body).map_err(|error| file.undecodable(&error)),
            Err(error) => Err(error),
        };
        let what = match read {
            Ok(inner) => {
                *lock(&list.inner) = inner;
                return Ok(list);
            }
            Err(Error::Corrupt { offset, what, .. }) => format!("{what} at byte {offset}"),
            Err(error) if error.is_unreadable() => error.to_string(),
            Err(error) => return Err(error),
        };
        let what = format!("{what}; what it listed is forgotten");
        let name = FILE_NAME.to_string();
        list.note(Damage::of_store(DamagePlace::SideFile, name, what), vfs.now());
        Ok(list)
    }

    /// Adds what was met, unless it is known.
    pub fn note(&self, damage: Damage, now_ns: i64) {
        let mut inner = lock(&self.inner);
        if let Some(known) = inner.entries.iter_mut().find(|known| known.damage.is(&damage)) {
            known.is_met = true;
            return;
        }
        let damage = Damage { noticed_ns: now_ns, ..damage };
        let of_file = |entry: &&mut Entry| entry.damage.file == damage.file;
        let (mut count, mut last) = (0, None);
        for entry in inner.entries.iter_mut().filter(of_file) {
            count += 1;
            last = Some(entry);
        }
        if let (ENTRIES_PER_FILE_MAX.., Some(last)) = (count, last) {
            // Nobody remembers which of them were met: what lies within is not counted again.
            last.is_met = true;
            if last.damage.span.covers(&damage.span) {
                return;
            }
            last.damage.span = joined(&last.damage.span, &damage.span);
            (last.damage.series, last.damage.samples) = (None, None);
            inner.noticed_total += 1;
            inner.is_dirty = true;
            return;
        }
        if inner.entries.len() < ENTRIES_MAX {
            inner.noticed_total += 1;
            inner.is_dirty = true;
            inner.news.push(damage.clone());
            inner.entries.push(Entry { damage, is_met: true });
        }
    }

    /// Takes out what is damaged no more; told are an entry, and whether it was met since start.
    pub(crate) fn retain(&self, is_still: impl Fn(&Damage, bool) -> bool) {
        let mut inner = lock(&self.inner);
        let count = inner.entries.len();
        inner.entries.retain(|entry| is_still(&entry.damage, entry.is_met));
        inner.is_dirty |= inner.entries.len() < count;
    }

    /// All entries, in the order in which they were noticed.
    pub fn list(&self) -> Vec<Damage> {
        lock(&self.inner).entries.iter().map(|entry| entry.damage.clone()).collect()
    }

    /// The same, and whether each was met since the store was opened.
    pub(crate) fn list_met(&self) -> Vec<(Damage, bool)> {
        let inner = lock(&self.inner);
        inner.entries.iter().map(|entry| (entry.damage.clone(), entry.is_met)).collect()
    }

    /// The entries that are new since the last call.
    pub fn take_news(&self) -> Vec<Damage> {
        std::mem::take(&mut lock(&self.inner).news)
    }

    /// How many entries there are of each place, and how many things were ever noticed.
    pub fn counts(&self) -> ([u64; DamagePlace::ALL.len()], u64) {
        let inner = lock(&self.inner);
        let mut counts = [0; DamagePlace::ALL.len()];
        inner.entries.iter().for_each(|entry| counts[entry.damage.place as usize] += 1);
        (counts, inner.noticed_total)
    }

    /// When a scrub last came to its end, wall clock.
    pub fn scrubbed_ns(&self) -> Option<i64> {
        lock(&self.inner).scrubbed_ns
    }

    pub(crate) fn set_scrubbed(&self, now_ns: i64) {
        let mut inner = lock(&self.inner);
        inner.scrubbed_ns = Some(now_ns);
        inner.is_dirty = true;
    }

    /// A path as entries have it: in the store's directory.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.dir).unwrap_or(path).display().to_string()
    }

    /// Writes the file if something changed since it was read or written.
    ///
    /// # Errors
    /// On I/O errors; it is tried again next time.
    pub fn write(&self, vfs: &dyn Vfs) -> Result<()> {
        let _one = lock(&self.writing);
        let body = {
            let mut inner = lock(&self.inner);
            if !inner.is_dirty {
                return Ok(());
            }
            inner.is_dirty = false;
            encode(&inner)
        };
        let written = self.file().write(vfs, &body);
        if written.is_err() {
            lock(&self.inner).is_dirty = true;
        }
        written
    }

    fn file(&self) -> SideFile {
        SideFile { path: self.dir.join(FILE_NAME), magic: MAGIC }
    }
}

/// From the first instant of either to the last.
pub(crate) fn joined(a: &TimeRange, b: &TimeRange) -> TimeRange {
    TimeRange::new(a.start.min(b.start), a.end.max(b.end))
}

fn encode(inner: &Inner) -> Vec<u8> {
    let mut body = Vec::new();
    put_varint(&mut body, inner.noticed_total);
    put_optional(&mut body, inner.scrubbed_ns.map(codec::zigzag));
    put_varint(&mut body, inner.entries.len() as u64);
    inner.entries.iter().for_each(|entry| entry.damage.encode(&mut body));
    body
}

fn decode(body: &[u8]) -> std::result::Result<Inner, codec::Error> {
    let mut reader = Reader::new(body);
    let noticed_total = reader.varint()?;
    let scrubbed_ns = optional(&mut reader)?.map(codec::unzigzag);
    let count = reader.varint_size(ENTRIES_MAX)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(Entry { damage: Damage::decode(&mut reader)?, is_met: false });
    }
    match reader.is_empty() {
        true => Ok(Inner { entries, noticed_total, scrubbed_ns, ..Inner::default() }),
        false => Err(reader.corrupt("the end of the list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    fn page(number: u64) -> Damage {
        let (file, what) = ("partitions/2024-10/parts/1.part".into(), format!("page {number}"));
        let start = 1_727_740_800_000_000_000 + number as i64;
        let damage =
            Damage::of_partition(PartitionLength::Month.of(start), DamagePlace::Page, file, what);
        Damage { span: TimeRange::new(start, start + 9), series: Some(number), ..damage }
    }

    fn disk() -> SimVfs {
        let disk = SimVfs::new(1);
        disk.create_dir_all(Path::new("/data")).unwrap();
        disk
    }

    #[test]
    fn what_is_noted_is_listed_once_and_survives() {
        let (disk, dir) = (disk(), Path::new("/data"));
        let list = DamageList::read(&disk, dir).unwrap();
        for _ in 0..3 {
            list.note(page(1), 7);
            list.note(page(2), 8);
        }
        let listed = list.list();
        assert_eq!(
            listed,
            [Damage { noticed_ns: 7, ..page(1) }, Damage { noticed_ns: 8, ..page(2) }]
        );
        assert_eq!((list.take_news().len(), list.take_news().len()), (2, 0));
        list.set_scrubbed(9);
        list.write(&disk).unwrap();
        let again = DamageList::read(&disk, dir).unwrap();
        assert_eq!(
            (again.list(), again.counts(), again.scrubbed_ns()),
            (listed, list.counts(), Some(9))
        );
        assert_eq!(again.take_news(), [], "people have been told");
        again.note(page(1), 10);
        assert_eq!(again.counts(), ([2, 0, 0, 0, 0, 0], 2), "known things are not noticed again");
        again.retain(|damage, _| damage.series == Some(2));
        again.write(&disk).unwrap();
        let last = DamageList::read(&disk, dir).unwrap();
        assert_eq!(last.counts(), ([1, 0, 0, 0, 0, 0], 2), "the count of all there ever was stays");
    }

    #[test]
    fn the_list_is_bounded() {
        let list = DamageList::new(Path::new("/data"));
        for number in 0..100 {
            list.note(page(number), 1);
        }
        let listed = list.list();
        assert_eq!(listed.len(), ENTRIES_PER_FILE_MAX);
        let last = listed.last().unwrap();
        assert_eq!(last.span, TimeRange::new(page(31).span.start, page(99).span.end));
        for _ in 0..2 {
            for number in 0..2 * ENTRIES_MAX as u64 {
                list.note(Damage { file: number.to_string(), ..page(number) }, 1);
            }
            (0..100).for_each(|number| list.note(page(number), 1));
        }
        assert_eq!(list.list().len(), ENTRIES_MAX);
        let of_others = (ENTRIES_MAX - ENTRIES_PER_FILE_MAX) as u64;
        assert_eq!(list.counts().1, 100 + of_others, "each once, as long as it is remembered");
    }

    #[test]
    fn a_rotten_list_is_begun_anew_and_that_is_said() {
        let (disk, dir) = (disk(), Path::new("/data"));
        let list = DamageList::new(dir);
        list.note(page(1), 7);
        list.write(&disk).unwrap();
        let path = dir.join(FILE_NAME);
        for byte in 0..disk.size(&path).unwrap() {
            disk.flip_bit(&path, byte, 3).unwrap();
            let read = DamageList::read(&disk, dir).unwrap();
            let [entry] = &*read.list() else { panic!("one entry") };
            assert_eq!((entry.place, entry.file.as_str()), (DamagePlace::SideFile, FILE_NAME));
            disk.flip_bit(&path, byte, 3).unwrap();
        }
        assert_eq!(DamageList::read(&disk, dir).unwrap().list().len(), 1);
    }

    #[test]
    fn sentences_name_file_time_and_what_to_do() {
        assert_eq!(rfc3339(1_727_740_800_000_000_000), "2024-10-01T00:00:00Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59Z");
        let text = page(1).sentence();
        for piece in ["parts/1.part", "page 1", "2024-10-01T00:00:00Z", "quipu verify --repair"] {
            assert!(text.contains(piece), "{text}");
        }
    }
}
