//! `experimental/geo`: rows by place, distances, tokens of S2 cells.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::sphere::{Cell, LEVEL_MAX, Point, Polygon};
use crate::table::Table;
use crate::value::{Record, Value};
use std::sync::Arc;

const GEO: &str = "experimental/geo";

pub(super) const FUNCTIONS: &[Builtin] = &[
    function(GEO, "asTracks", as_tracks),
    function(GEO, "getLevel", get_level),
    function(GEO, "s2CellIDToken", cell_token),
    function(GEO, "s2CellLatLon", cell_center),
    function(GEO, "strictFilter", strict_filter),
    function(GEO, "toRows", super::rows::fields_as_columns),
    function(GEO, "ST_Contains", contains),
    function(GEO, "ST_Distance", distance),
    function(GEO, "ST_DWithin", is_within),
    function(GEO, "ST_Length", length),
    function(GEO, "stContains", contains),
    function(GEO, "stDistance", distance),
    function(GEO, "stLength", length),
];

/// Radius of the Earth in kilometers.
const EARTH_RADIUS_KM: f64 = 6371.01;
/// Kilometers of a mile.
const MILE_KM: f64 = 1.609_344;

/// Whether a member of a package is `geo.units`.
pub(crate) fn is_geo_units(path: &str, name: &str) -> bool {
    path == GEO && name == "units"
}

/// `geo.units` of a query that does not set it.
pub(crate) fn default_geo_units() -> Value {
    let fields = vec![("distance".into(), Value::text("km"))];
    Value::Record(Arc::new(Record::new(fields)))
}

/// Checks `option geo.units`, the only option of a package.
///
/// # Errors
/// For any other option, and for values that are no units.
pub(crate) fn geo_option(path: &str, name: &str, value: Value) -> Result<Option<Value>> {
    if !is_geo_units(path, name) {
        let message = format!("option {name:?} of package {path:?} cannot be set here");
        return Err(Error::name(message));
    }
    earth_radius(&value)?;
    Ok(Some(value))
}

/// Radius of the Earth in the unit that a record names.
fn earth_radius(units: &Value) -> Result<f64> {
    let Value::Record(record) = units else {
        let found = units.type_words();
        return Err(Error::runtime(format!("geo.units: expected a record but found {found}")));
    };
    match record.get("distance") {
        Some(Value::Text(unit)) => match &**unit {
            "m" => Ok(EARTH_RADIUS_KM * 1000.0),
            "km" => Ok(EARTH_RADIUS_KM),
            "mile" => Ok(EARTH_RADIUS_KM / MILE_KM),
            other => Err(Error::runtime(format!(
                "geo.units: unsupported distance unit {other:?}: use m, km or mile"
            ))),
        },
        _ => Err(Error::runtime("geo.units: missing field distance, which is m, km or mile")),
    }
}

/// Radius of the Earth in the units of a call, or else of the query.
fn radius_of(call: &Call<'_>) -> Result<f64> {
    let units = call.optional("units").or_else(|| call.evaluation.geo_units());
    earth_radius(&units.unwrap_or_else(default_geo_units))
}

/// A place or an area.
enum Geometry {
    Point(Point),
    /// Latitudes and longitudes from and to.
    Box([f64; 4]),
    /// Center and radius in radians.
    Circle(Point, f64),
    Polygon(Polygon),
    Line(Vec<Point>),
}

fn invalid(name: &str) -> Error {
    Error::runtime(format!(
        "argument {name}: unsupported geometry. A point has lat and lon; a circle lat, lon and \
         radius; a box minLat, maxLat, minLon and maxLon; a polygon points; a line linestring"
    ))
}

/// Fields of a record, all of them floats.
fn floats<const N: usize>(record: &Record, names: [&str; N]) -> Option<[f64; N]> {
    let found = names.map(|name| match record.get(name) {
        Some(Value::Float(value)) => *value,
        _ => f64::NAN,
    });
    (record.fields.len() == N && !found.iter().any(|value| value.is_nan())).then_some(found)
}

fn geometry(call: &Call<'_>, name: &'static str, radius: f64) -> Result<Geometry> {
    let value = call.required(name)?;
    let Value::Record(record) = &value else { return Err(call.wrong(name, "record", &value)) };
    if let Some([lat, lon]) = floats(record, ["lat", "lon"]) {
        return Ok(Geometry::Point(Point::from_degrees(lat, lon)));
    }
    if let Some([lat, lon, distance]) = floats(record, ["lat", "lon", "radius"]) {
        return Ok(Geometry::Circle(Point::from_degrees(lat, lon), distance / radius));
    }
    let names = ["minLat", "maxLat", "minLon", "maxLon"];
    if let Some([south, north, west, east]) = floats(record, names) {
        // InfluxDB takes the bounds of a box in either order.
        let (south, north) = (south.min(north), south.max(north));
        return Ok(Geometry::Box([south, north, west.min(east), west.max(east)]));
    }
    match (record.get("points"), record.get("linestring")) {
        (Some(Value::Array(items)), None) => {
            call.evaluation.look_through(size_of_val::<[Value]>(items))?;
            let points = polygon_points(items).ok_or_else(|| invalid(name))?;
            Ok(Geometry::Polygon(Polygon::new(points)))
        }
        (None, Some(Value::Text(text))) => {
            call.evaluation.look_through(text.len())?;
            call.evaluation.hold(text.len() * size_of::<Point>())?;
            Ok(Geometry::Line(line_points(text).ok_or_else(|| invalid(name))?))
        }
        _ => Err(invalid(name)),
    }
}

fn polygon_points(items: &[Value]) -> Option<Vec<Point>> {
    let point = |item: &Value| {
        let Value::Record(record) = item else { return None };
        let [lat, lon] = floats(record, ["lat", "lon"])?;
        Some(Point::from_degrees(lat, lon))
    };
    let points: Option<Vec<Point>> = items.iter().map(point).collect();
    points.filter(|points| 3 <= points.len())
}

/// `"lon lat, lon lat, .."`
fn line_points(text: &str) -> Option<Vec<Point>> {
    let point = |pair: &str| {
        let mut numbers = pair.split_whitespace().map(str::parse::<f64>);
        let (lon, lat) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Point::from_degrees(lat, lon))
    };
    text.split(',').map(point).collect()
}

impl Geometry {
    /// Whether an area contains a point; nothing for what has no area.
    fn contains(&self, point: Point) -> Option<bool> {
        match self {
            Geometry::Box([south, north, west, east]) => {
                let (lat, lon) = point.to_degrees();
                // Bounds in degrees lose a bit on their way through the sphere.
                let is_in =
                    |value: f64, low: f64, high: f64| low - 1e-12 <= value && value <= high + 1e-12;
                Some(is_in(lat, *south, *north) && is_in(lon, *west, *east))
            }
            Geometry::Circle(center, radius) => Some(center.angle(point) <= *radius),
            Geometry::Polygon(polygon) => Some(polygon.contains(point)),
            Geometry::Point(_) | Geometry::Line(_) => None,
        }
    }

    /// The angle to the nearest point; nothing for a box, whose sides are no shortest lines.
    fn angle(&self, point: Point) -> Option<f64> {
        match self {
            Geometry::Point(other) => Some(other.angle(point)),
            Geometry::Circle(center, radius) => Some((center.angle(point) - radius).max(0.0)),
            Geometry::Polygon(polygon) => Some(polygon.angle(point)),
            Geometry::Line(points) => Some(angle_to_line(point, points)),
            Geometry::Box(_) => (self.contains(point) == Some(true)).then_some(0.0),
        }
    }
}

fn angle_to_line(point: Point, line: &[Point]) -> f64 {
    let corners = line.iter().map(|corner| point.angle(*corner));
    let edges = line.windows(2).map(|pair| point.angle_to_arc(pair[0], pair[1]));
    corners.chain(edges).fold(f64::INFINITY, f64::min)
}

/// `geo.ST_Contains(region:, geometry:)`
fn contains(call: Call<'_>) -> Result<Value> {
    let radius = radius_of(&call)?;
    let region = geometry(&call, "region", radius)?;
    let other = geometry(&call, "geometry", radius)?;
    call.done()?;
    let points = match other {
        Geometry::Point(point) => vec![point],
        Geometry::Line(points) => points,
        _ => return Err(Error::runtime("argument geometry: expected a point or a linestring")),
    };
    for point in points {
        if !contained(&region, point)? {
            return Ok(Value::Boolean(false));
        }
    }
    Ok(Value::Boolean(true))
}

fn contained(region: &Geometry, point: Point) -> Result<bool> {
    let message = "argument region: expected a circle, a box or a polygon";
    region.contains(point).ok_or_else(|| Error::runtime(message))
}

fn distance(call: Call<'_>) -> Result<Value> {
    measured(&call).map(Value::Float)
}

/// `geo.ST_DWithin(region:, geometry:, distance:)`
fn is_within(call: Call<'_>) -> Result<Value> {
    let missing = || Error::name("ST_DWithin: missing required argument distance");
    let most = call.float("distance")?.ok_or_else(missing)?;
    Ok(Value::Boolean(measured(&call)? <= most))
}

/// Distance between the region and the geometry of a call, in its units.
fn measured(call: &Call<'_>) -> Result<f64> {
    let radius = radius_of(call)?;
    let region = geometry(call, "region", radius)?;
    let other = geometry(call, "geometry", radius)?;
    call.done()?;
    let angle = match (&region, &other) {
        (region, Geometry::Point(point)) => region.angle(*point),
        (Geometry::Point(point), line @ Geometry::Line(_)) => line.angle(*point),
        (Geometry::Circle(center, size), line @ Geometry::Line(_)) => {
            line.angle(*center).map(|angle| (angle - size).max(0.0))
        }
        _ => None,
    };
    let message = format!(
        "{}: this pair of geometries is not supported here: measure from a point, a circle or a \
         polygon to a point, or from a point or a circle to a line",
        call.name
    );
    angle.map(|angle| angle * radius).ok_or_else(|| Error::runtime(message))
}

/// `geo.ST_Length(geometry:)`
fn length(call: Call<'_>) -> Result<Value> {
    let radius = radius_of(&call)?;
    let line = geometry(&call, "geometry", radius)?;
    call.done()?;
    match line {
        Geometry::Point(_) => Ok(Value::Float(0.0)),
        Geometry::Line(points) => {
            let angles = points.windows(2).map(|pair| pair[0].angle(pair[1]));
            Ok(Value::Float(angles.sum::<f64>() * radius))
        }
        _ => Err(Error::runtime("argument geometry: expected a point or a linestring")),
    }
}

/// `geo.strictFilter(region:)` keeps rows whose `lat` and `lon` are in the region.
fn strict_filter(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let region = geometry(&call, "region", radius_of(&call)?)?;
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let rows = rows_within(&call, &table, &region)?;
        if rows.is_empty() { Ok(()) } else { out.push(table.picked(&rows)) }
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

fn rows_within(call: &Call<'_>, table: &Table, region: &Geometry) -> Result<Vec<usize>> {
    let lat = table.column("lat").ok_or_else(|| no_column("lat"))?;
    let lon = table.column("lon").ok_or_else(|| no_column("lon"))?;
    let mut rows = Vec::new();
    for row in 0..table.rows {
        call.evaluation.tick(row)?;
        let (Some(lat), Some(lon)) = (lat.number(row), lon.number(row)) else {
            let message = "invalid point: lat and lon must be floats and not null";
            return Err(Error::runtime(message));
        };
        if contained(region, Point::from_degrees(lat, lon))? {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// `geo.asTracks(groupBy: ["id", "tid"], orderBy: ["_time"])`
fn as_tracks(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let texts = |names: &[&str]| Value::list(names.iter().map(|name| Value::text(name)).collect());
    let group_by = call.optional("groupBy").unwrap_or_else(|| texts(&["id", "tid"]));
    let order_by = call.optional("orderBy").unwrap_or_else(|| texts(&["_time"]));
    call.done()?;
    let grouped = call.pipe("group", Value::Stream(stream), &[("columns", group_by)])?;
    call.pipe("sort", grouped, &[("columns", order_by)])
}

fn cell_of(token: &str) -> Result<Cell> {
    let message = || format!("invalid token {:?}", token.chars().take(32).collect::<String>());
    Cell::from_token(token).ok_or_else(|| Error::runtime(message()))
}

/// `geo.s2CellIDToken(point: {lat:, lon:}, level:)`, or of a smaller cell's `token`.
fn cell_token(call: Call<'_>) -> Result<Value> {
    let token = call.text("token")?.filter(|token| !token.is_empty());
    let point = call.optional("point");
    let level = call.integer("level")?.and_then(|level| u32::try_from(level).ok());
    call.done()?;
    let level = level.filter(|level| (1..=LEVEL_MAX).contains(level));
    let level = level.ok_or_else(|| Error::runtime("argument level must be between 1 and 30"))?;
    let cell = match (token, point) {
        (Some(token), None) => {
            let cell = cell_of(&token)?;
            if cell.level() < level {
                let own = cell.level();
                let message = format!("the token has level {own}, which is lower than {level}");
                return Err(Error::runtime(message));
            }
            cell
        }
        (None, Some(Value::Record(record))) => {
            let fields = (record.get("lat"), record.get("lon"));
            let (Some(Value::Float(lat)), Some(Value::Float(lon))) = fields else {
                return Err(invalid("point"));
            };
            Cell::containing(Point::from_degrees(*lat, *lon))
        }
        _ => return Err(Error::runtime("either token or point must be specified")),
    };
    Ok(Value::text(&cell.parent(level).to_token()))
}

/// `geo.getLevel(token:)`
fn get_level(call: Call<'_>) -> Result<Value> {
    let token = call.required_text("token")?;
    call.done()?;
    Ok(Value::Integer(i64::from(cell_of(&token)?.level())))
}

/// `geo.s2CellLatLon(token:)`
fn cell_center(call: Call<'_>) -> Result<Value> {
    let token = call.required_text("token")?;
    call.done()?;
    let (lat, lon) = cell_of(&token)?.center().to_degrees();
    let fields = vec![("lat".into(), Value::Float(lat)), ("lon".into(), Value::Float(lon))];
    Ok(Value::Record(Arc::new(Record::new(fields))))
}
