//! Places within an area: `GEOSEARCH`, and `GEORADIUS`, which came before it.

use super::cells::{Place, Search, Shape};
use super::{answer_distance, answer_place, place_arg, place_of, unit_arg};
use crate::call::Call;
use crate::commands::{WRITE, zset};
use crate::error::{CommandError, SYNTAX};
use crate::number::{int_arg, parse_f64};
use crate::value::Zset;

/// How a command says where it searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Around a point, both among the first arguments.
    Radius,
    /// Around a member.
    RadiusByMember,
    /// By options.
    Search,
}

/// In which order places are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    None,
    Near,
    Far,
}

/// What is asked.
struct Query<'a> {
    source: &'a [u8],
    center: Center,
    /// Which option said the center; another one must not.
    center_option: Option<&'static str>,
    shape: Option<Shape>,
    /// Meters of the unit of its distances.
    unit: f64,
    sort: Sort,
    /// As many places at most, 0 for all.
    count: usize,
    /// Any places will do.
    any: bool,
    with_distance: bool,
    with_hash: bool,
    with_place: bool,
    /// Where the result is stored.
    target: Option<&'a [u8]>,
    /// With distances instead of cells.
    stores_distance: bool,
}

/// Around what is searched.
#[derive(Clone, Copy, Debug)]
enum Center {
    Unknown,
    Place(Place),
    /// A member, of a key that is not there.
    OfNothing,
}

/// A place that was found.
struct Found {
    member: Vec<u8>,
    score: f64,
    place: Place,
    distance: f64,
}

pub(super) fn georadius(call: &mut Call<'_>) -> Result<(), CommandError> {
    run(call, Form::Radius)
}

pub(super) fn georadius_ro(call: &mut Call<'_>) -> Result<(), CommandError> {
    run(call, Form::Radius)
}

pub(super) fn georadiusbymember(call: &mut Call<'_>) -> Result<(), CommandError> {
    run(call, Form::RadiusByMember)
}

pub(super) fn georadiusbymember_ro(call: &mut Call<'_>) -> Result<(), CommandError> {
    run(call, Form::RadiusByMember)
}

pub(super) fn geosearch(call: &mut Call<'_>) -> Result<(), CommandError> {
    run(call, Form::Search)
}

pub(super) fn geosearchstore(call: &mut Call<'_>) -> Result<(), CommandError> {
    run(call, Form::Search)
}

/// The keys of `GEORADIUS` and `GEORADIUSBYMEMBER`: the source, and what is behind the last `STORE` or
/// `STOREDIST`.
pub(super) fn key_places(args: &[&[u8]]) -> Vec<usize> {
    let is_store = |word: &[u8]| {
        word.eq_ignore_ascii_case(b"store") || word.eq_ignore_ascii_case(b"storedist")
    };
    let stores = (5..args.len().saturating_sub(1)).rev().find(|at| is_store(args[*at]));
    [1].into_iter().chain(stores.map(|at| at + 1)).collect()
}

fn length_arg(
    text: &[u8],
    not_a_number: &'static str,
    negative: &'static str,
) -> Result<f64, CommandError> {
    let length = parse_f64(text).ok_or(CommandError::new(not_a_number))?;
    if length < 0.0 { Err(CommandError::new(negative)) } else { Ok(length) }
}

impl<'a> Query<'a> {
    fn of(source: &'a [u8]) -> Query<'a> {
        Query {
            source,
            center: Center::Unknown,
            center_option: None,
            shape: None,
            unit: 1.0,
            sort: Sort::None,
            count: 0,
            any: false,
            with_distance: false,
            with_hash: false,
            with_place: false,
            target: None,
            stores_distance: false,
        }
    }

    fn set_radius(&mut self, radius: &[u8], unit: &[u8]) -> Result<(), CommandError> {
        let words = ("ERR need numeric radius", "ERR radius cannot be negative");
        let radius = length_arg(radius, words.0, words.1)?;
        self.unit = unit_arg(unit)?;
        self.shape = Some(Shape::Circle(radius * self.unit));
        Ok(())
    }

    fn set_box(&mut self, width: &[u8], height: &[u8], unit: &[u8]) -> Result<(), CommandError> {
        let number = |text, words| parse_f64(text).ok_or(CommandError::new(words));
        let width = number(width, "ERR need numeric width")?;
        let height = number(height, "ERR need numeric height")?;
        if width < 0.0 || height < 0.0 {
            return Err(CommandError::new("ERR height or width cannot be negative"));
        }
        self.unit = unit_arg(unit)?;
        self.shape = Some(Shape::Box(width * self.unit, height * self.unit));
        Ok(())
    }

    /// Takes an option off the front of what is left. Returns the rest.
    fn take(
        &mut self,
        rest: &'a [&'a [u8]],
        form: Form,
        may_store: bool,
        find: impl Fn(&'a [u8]) -> Result<Center, CommandError>,
    ) -> Result<&'a [&'a [u8]], CommandError> {
        let [word, more @ ..] = rest else { return Ok(rest) };
        let by_options = form == Form::Search;
        match (word.to_ascii_lowercase().as_slice(), more) {
            (b"withdist", _) => self.with_distance = true,
            (b"withhash", _) => self.with_hash = true,
            (b"withcoord", _) => self.with_place = true,
            (b"any", _) => self.any = true,
            (b"asc", _) => self.sort = Sort::Near,
            (b"desc", _) => self.sort = Sort::Far,
            (b"count", [count, more @ ..]) => {
                let count = int_arg(count)?;
                let count = usize::try_from(count).ok().filter(|count| 0 < *count);
                self.count = count.ok_or(CommandError::new("ERR COUNT must be > 0"))?;
                return Ok(more);
            }
            (b"store", [key, more @ ..]) if !by_options && may_store => {
                (self.target, self.stores_distance) = (Some(*key), false);
                return Ok(more);
            }
            (b"storedist", [key, more @ ..]) if !by_options && may_store => {
                (self.target, self.stores_distance) = (Some(*key), true);
                return Ok(more);
            }
            (b"storedist", _) if by_options && self.target.is_some() => {
                self.stores_distance = true;
            }
            (b"frommember", [member, more @ ..])
                if by_options && self.center_option != Some("fromlonlat") =>
            {
                self.center = find(member)?;
                self.center_option = Some("frommember");
                return Ok(more);
            }
            (b"fromlonlat", [longitude, latitude, more @ ..])
                if by_options && self.center_option != Some("frommember") =>
            {
                self.center = Center::Place(place_arg(longitude, latitude)?);
                self.center_option = Some("fromlonlat");
                return Ok(more);
            }
            (b"byradius", [radius, unit, more @ ..])
                if by_options && !matches!(self.shape, Some(Shape::Box(..))) =>
            {
                self.set_radius(radius, unit)?;
                return Ok(more);
            }
            (b"bybox", [width, height, unit, more @ ..])
                if by_options && !matches!(self.shape, Some(Shape::Circle(_))) =>
            {
                self.set_box(width, height, unit)?;
                return Ok(more);
            }
            _ => return Err(SYNTAX),
        }
        Ok(more)
    }

    /// Whether the options go together.
    fn check(&self, call: &Call<'_>, form: Form) -> Result<(), CommandError> {
        let name = String::from_utf8_lossy(call.args[0]);
        let by_options = form == Form::Search;
        let words = if self.target.is_some()
            && (self.with_distance || self.with_hash || self.with_place)
        {
            let what = if by_options { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            format!("ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
        } else if by_options && matches!(self.center, Center::Unknown) {
            format!("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}")
        } else if by_options && self.shape.is_none() {
            format!("ERR exactly one of BYRADIUS and BYBOX can be specified for {name}")
        } else if self.any && self.count == 0 {
            "ERR the ANY argument requires COUNT argument".to_owned()
        } else {
            return Ok(());
        };
        Err(CommandError::new(words))
    }
}

/// Reads what is asked. Members are looked up on the way, as their absence is an error of its own.
fn parse<'a>(call: &mut Call<'a>, form: Form) -> Result<Query<'a>, CommandError> {
    let args = call.args;
    let is_stored = call.command.info.name == "geosearchstore";
    let may_store = call.command.info.is(WRITE);
    let mut query = Query::of(args[if is_stored { 2 } else { 1 }]);
    let zset = call.keys.get::<Zset>(call.db, query.source)?;
    let find = |member: &'a [u8]| match zset {
        None => Ok(Center::OfNothing),
        Some(zset) => {
            let place = zset.score(member).map(|score| Center::Place(place_of(score)));
            place.ok_or(CommandError::new("ERR could not decode requested zset member"))
        }
    };
    let mut rest = match form {
        Form::Radius => {
            query.center = Center::Place(place_arg(args[2], args[3])?);
            query.set_radius(args[4], args[5])?;
            &args[6..]
        }
        Form::RadiusByMember => {
            query.center = find(args[2])?;
            if zset.is_some() {
                query.set_radius(args[3], args[4])?;
            }
            &args[5..]
        }
        Form::Search if is_stored => {
            query.target = Some(args[1]);
            &args[3..]
        }
        Form::Search => &args[2..],
    };
    while !rest.is_empty() {
        rest = query.take(rest, form, may_store, find)?;
    }
    Ok(query)
}

fn run(call: &mut Call<'_>, form: Form) -> Result<(), CommandError> {
    let mut query = parse(call, form)?;
    query.check(call, form)?;
    let event = if form == Form::Search { "geosearchstore" } else { "georadiusstore" };
    let Some(zset) = call.keys.get::<Zset>(call.db, query.source)? else {
        match query.target {
            Some(target) => zset::store(call, target, Zset::default(), event)?,
            None => call.out.array(0),
        }
        return Ok(());
    };
    if query.count != 0 && query.sort == Sort::None && !query.any {
        query.sort = Sort::Near;
    }
    let found = find_all(zset, &query);
    match query.target {
        Some(target) => {
            let scores = found.iter().map(|one| match query.stores_distance {
                true => (&*one.member, one.distance / query.unit),
                false => (&*one.member, one.score),
            });
            zset::store(call, target, Zset::from_scores(scores), event)
        }
        None => {
            answer(call, &query, &found);
            Ok(())
        }
    }
}

fn find_all(zset: &Zset, query: &Query<'_>) -> Vec<Found> {
    let (Center::Place(center), Some(shape)) = (query.center, query.shape) else {
        return Vec::new();
    };
    let search = Search { center, shape };
    let mut found: Vec<Found> = Vec::new();
    let limit = if query.any { query.count } else { usize::MAX };
    for (from, to) in search.ranges() {
        let start = zset.count_scores_while(|score| score < from as f64);
        let end = zset.count_scores_while(|score| score < to as f64);
        zset.each(start..end, false, |member, score| {
            let place = place_of(score);
            if found.len() < limit
                && let Some(distance) = search.distance(place)
            {
                found.push(Found { member: member.to_vec(), score, place, distance });
            }
        });
    }
    match query.sort {
        Sort::None => {}
        Sort::Near => found.sort_by(|one, other| one.distance.total_cmp(&other.distance)),
        Sort::Far => found.sort_by(|one, other| other.distance.total_cmp(&one.distance)),
    }
    if query.count != 0 {
        found.truncate(query.count);
    }
    found
}

fn answer(call: &mut Call<'_>, query: &Query<'_>, found: &[Found]) {
    let out = &mut *call.out;
    let Query { with_distance, with_hash, with_place, .. } = *query;
    let extras = [with_distance, with_hash, with_place].into_iter().filter(|with| *with).count();
    out.array(found.len());
    for one in found {
        if 0 < extras {
            out.array(1 + extras);
        }
        out.bulk(&one.member);
        if with_distance {
            answer_distance(out, one.distance / query.unit);
        }
        if with_hash {
            out.int(one.score as i64);
        }
        if with_place {
            answer_place(out, one.place);
        }
    }
}
