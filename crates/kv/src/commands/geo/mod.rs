//! Places on Earth: members of sorted sets whose scores are the numbers of cells.

mod cells;
mod search;

use super::zset::{self, AddOptions};
use super::{Command, DENY_OOM, Group, Keys, ONE_KEY, READONLY, TWO_KEYS, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX};
use crate::number::float_arg;
use crate::reply::Reply;
use crate::value::Zset;
use cells::Place;

/// The source, and where the result is stored.
const SOURCE_AND_STORE: Keys = Keys::Found(search::key_places);

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("geoadd", -5, WRITE | DENY_OOM, ONE_KEY, Group::Geo, "3.2.0", "Adds places by longitude and latitude.", geoadd),
    command("geodist", -4, READONLY, ONE_KEY, Group::Geo, "3.2.0", "How far two places are from each other.", geodist),
    command("geohash", -2, READONLY, ONE_KEY, Group::Geo, "3.2.0", "The geohashes of places.", geohash),
    command("geopos", -2, READONLY, ONE_KEY, Group::Geo, "3.2.0", "Longitudes and latitudes of places.", geopos),
    command("georadius", -6, WRITE | DENY_OOM, SOURCE_AND_STORE, Group::Geo, "3.2.0", "Places around a point, which may be stored.", search::georadius),
    command("georadius_ro", -6, READONLY, ONE_KEY, Group::Geo, "3.2.10", "Places around a point.", search::georadius_ro),
    command("georadiusbymember", -5, WRITE | DENY_OOM, SOURCE_AND_STORE, Group::Geo, "3.2.0", "Places around another one, which may be stored.", search::georadiusbymember),
    command("georadiusbymember_ro", -5, READONLY, ONE_KEY, Group::Geo, "3.2.10", "Places around another one.", search::georadiusbymember_ro),
    command("geosearch", -7, READONLY, ONE_KEY, Group::Geo, "6.2.0", "Places within a circle or a box.", search::geosearch),
    command("geosearchstore", -8, WRITE | DENY_OOM, TWO_KEYS, Group::Geo, "6.2.0", "Stores places within a circle or a box.", search::geosearchstore),
];

/// Units of length, in meters.
fn unit_arg(text: &[u8]) -> Result<f64, CommandError> {
    match text.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(CommandError::new("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

/// The place that a longitude and a latitude say.
fn place_arg(longitude: &[u8], latitude: &[u8]) -> Result<Place, CommandError> {
    let place = Place { longitude: float_arg(longitude)?, latitude: float_arg(latitude)? };
    if place.is_valid() {
        return Ok(place);
    }
    let Place { longitude, latitude } = place;
    let words = format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}");
    Err(CommandError::new(words))
}

/// The place that a member's score says.
fn place_of(score: f64) -> Place {
    Place::of_cell(score as u64)
}

/// Longitude and latitude, with all digits that they have of 17 decimals.
fn answer_place(out: &mut dyn Reply, place: Place) {
    out.array(2);
    for degrees in [place.longitude, place.latitude] {
        let text = format!("{degrees:.17}");
        let text = crate::number::trim_zeros(&text);
        out.double_as(if text == "-0" { "0" } else { text });
    }
}

fn answer_distance(out: &mut dyn Reply, distance: f64) {
    out.text(&format!("{distance:.4}"));
}

fn geoadd(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut options = AddOptions::default();
    let mut at = 2;
    while let Some(word) = call.args.get(at) {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => options.nx = true,
            b"xx" => options.xx = true,
            b"ch" => options.ch = true,
            _ => break,
        }
        at += 1;
    }
    let triples = call.args.get(at..).unwrap_or_default();
    if triples.is_empty() || !triples.len().is_multiple_of(3) || options.nx && options.xx {
        return Err(SYNTAX);
    }
    let mut scores = Vec::with_capacity(triples.len() / 3);
    for triple in triples.chunks_exact(3) {
        let place = place_arg(triple[0], triple[1])?;
        scores.push((place.cell() as f64, triple[2]));
    }
    zset::add(call, options, &scores)
}

fn geohash(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer_each(call, |out, score| match score {
        Some(score) => out.bulk(&place_of(score).geohash()),
        None => out.null(),
    })
}

fn geopos(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer_each(call, |out, score| match score {
        Some(score) => answer_place(out, place_of(score)),
        None => out.null_array(),
    })
}

/// Answers something for the score of each member.
fn answer_each(
    call: &mut Call<'_>,
    answer: impl Fn(&mut dyn Reply, Option<f64>),
) -> Result<(), CommandError> {
    let zset = call.keys.get::<Zset>(call.db, call.args[1])?;
    call.out.array(call.args.len() - 2);
    for member in &call.args[2..] {
        answer(call.out, zset.and_then(|zset| zset.score(member)));
    }
    Ok(())
}

fn geodist(call: &mut Call<'_>) -> Result<(), CommandError> {
    let unit = match call.args.get(4..).unwrap_or_default() {
        [] => 1.0,
        [unit] => unit_arg(unit)?,
        _ => return Err(SYNTAX),
    };
    let zset = call.keys.get::<Zset>(call.db, call.args[1])?;
    let score = |at: usize| zset.and_then(|zset| zset.score(call.args[at]));
    match (score(2), score(3)) {
        (Some(one), Some(other)) => {
            let distance = place_of(one).distance(place_of(other)) / unit;
            answer_distance(call.out, distance);
        }
        _ => call.out.null(),
    }
    Ok(())
}
