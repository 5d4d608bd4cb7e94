//! Geometry on a sphere: points, distances, polygons, and the S2 cells that divide it.
//!
//! A cell is a number: its face of a cube, and its place on a Hilbert curve over that face. See
//! `https://s2geometry.io/devguide/s2cell_hierarchy`.

use std::f64::consts::PI;

/// Level of the smallest cells.
pub(crate) const LEVEL_MAX: u32 = 30;

/// Quadrants of a cell in the order of the curve, by the orientation of the curve in it.
const QUADRANT_OF_POSITION: [[u64; 4]; 4] =
    [[0, 1, 3, 2], [0, 2, 3, 1], [3, 2, 0, 1], [3, 1, 0, 2]];
/// Change of the orientation in each position.
const TURN_OF_POSITION: [u64; 4] = [1, 0, 0, 3];

/// A point of the unit sphere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point([f64; 3]);

impl Point {
    pub(crate) fn from_degrees(lat: f64, lon: f64) -> Point {
        let ((sin_lat, cos_lat), (sin_lon, cos_lon)) =
            (lat.to_radians().sin_cos(), lon.to_radians().sin_cos());
        Point([cos_lat * cos_lon, cos_lat * sin_lon, sin_lat])
    }

    /// Latitude and longitude in degrees.
    pub(crate) fn to_degrees(self) -> (f64, f64) {
        let [x, y, z] = self.0;
        (z.atan2(x.hypot(y)).to_degrees(), y.atan2(x).to_degrees())
    }

    fn dot(self, other: Point) -> f64 {
        self.0.iter().zip(other.0).map(|(a, b)| a * b).sum()
    }

    fn cross(self, other: Point) -> Point {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Point([b * z - c * y, c * x - a * z, a * y - b * x])
    }

    fn norm(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// The angle between two points, in radians.
    pub(crate) fn angle(self, other: Point) -> f64 {
        self.cross(other).norm().atan2(self.dot(other))
    }

    /// The angle to the nearest point of the shorter arc from `start` to `end`.
    pub(crate) fn angle_to_arc(self, start: Point, end: Point) -> f64 {
        let normal = start.cross(end);
        let is_beside = normal.norm() != 0.0
            && 0.0 < normal.cross(start).dot(self)
            && normal.cross(end).dot(self) < 0.0;
        if is_beside {
            return (self.dot(normal).abs() / normal.norm()).min(1.0).asin();
        }
        self.angle(start).min(self.angle(end))
    }
}

/// The area to the left of the edges of a triangle, negative if they turn right.
fn signed_area(a: Point, b: Point, c: Point) -> f64 {
    let volume = a.dot(b.cross(c));
    2.0 * volume.atan2(1.0 + a.dot(b) + b.dot(c) + c.dot(a))
}

/// A polygon: the smaller one of the two areas that its edges divide the sphere into.
#[derive(Clone, Debug)]
pub(crate) struct Polygon {
    /// Counterclockwise.
    points: Vec<Point>,
}

impl Polygon {
    pub(crate) fn new(mut points: Vec<Point>) -> Polygon {
        let first = points.first().copied();
        let triangles = points.windows(2).filter_map(|pair| Some((first?, pair)));
        let area: f64 = triangles.map(|(first, pair)| signed_area(first, pair[0], pair[1])).sum();
        if area < 0.0 {
            points.reverse();
        }
        Polygon { points }
    }

    /// The edges, each from one point to the next.
    fn edges(&self) -> impl Iterator<Item = (Point, Point)> {
        let next = self.points.iter().cycle().skip(1);
        self.points.iter().copied().zip(next.copied())
    }

    /// Whether the directions to the corners turn around the point once, to the left.
    pub(crate) fn contains(&self, point: Point) -> bool {
        let turn = |(from, to): (Point, Point)| {
            let (from, to) = (point.cross(from), point.cross(to));
            from.cross(to).dot(point).atan2(from.dot(to))
        };
        PI < self.edges().map(turn).sum::<f64>()
    }

    /// The angle to the nearest point of the polygon.
    pub(crate) fn angle(&self, point: Point) -> f64 {
        if self.contains(point) {
            return 0.0;
        }
        let angles = self.edges().map(|(start, end)| point.angle_to_arc(start, end));
        angles.fold(PI, f64::min)
    }
}

/// An S2 cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell(u64);

impl Cell {
    /// The smallest cell around a point.
    pub(crate) fn containing(point: Point) -> Cell {
        let (face, u, v) = to_face(point);
        let (i, j) = (to_grid(u), to_grid(v));
        let (mut place, mut orientation) = (0, face & 1);
        for level in (0..LEVEL_MAX).rev() {
            let quadrant = (i >> level & 1) << 1 | (j >> level & 1);
            let order = &QUADRANT_OF_POSITION[orientation as usize];
            let position = order.iter().position(|other| *other == quadrant).unwrap_or(0);
            place = place << 2 | position as u64;
            orientation ^= TURN_OF_POSITION[position];
        }
        Cell(face << 61 | place << 1 | 1)
    }

    /// Reads a token: hexadecimal digits without the zeros at the end.
    pub(crate) fn from_token(token: &str) -> Option<Cell> {
        let is_digits = token.bytes().all(|byte| byte.is_ascii_hexdigit());
        if token.is_empty() || 16 < token.len() || !is_digits {
            return None;
        }
        let id = u64::from_str_radix(&format!("{token:0<16}"), 16).ok()?;
        let is_valid = id != 0 && id >> 61 < 6 && id.trailing_zeros() % 2 == 0;
        is_valid.then_some(Cell(id))
    }

    pub(crate) fn to_token(self) -> String {
        format!("{:016x}", self.0).trim_end_matches('0').to_string()
    }

    pub(crate) fn level(self) -> u32 {
        LEVEL_MAX - self.0.trailing_zeros() / 2
    }

    /// The cell of that level around this one, or this one if it is larger.
    pub(crate) fn parent(self, level: u32) -> Cell {
        let level = level.min(self.level());
        let last = 1_u64 << (2 * (LEVEL_MAX - level));
        Cell(self.0 & last.wrapping_neg() | last)
    }

    pub(crate) fn center(self) -> Point {
        let face = self.0 >> 61;
        let (mut i, mut j, mut orientation) = (0_u64, 0_u64, face & 1);
        let depth = self.level();
        for level in 0..depth {
            let position = (self.0 >> (2 * (LEVEL_MAX - level) - 1) & 3) as usize;
            let quadrant = QUADRANT_OF_POSITION[orientation as usize][position];
            (i, j) = (i << 1 | quadrant >> 1, j << 1 | quadrant & 1);
            orientation ^= TURN_OF_POSITION[position];
        }
        let size = (1_u64 << depth) as f64;
        let middle = |at: u64| from_grid((at as f64 + 0.5) / size);
        from_face(face, middle(i), middle(j))
    }
}

/// The face of a point and its place there, both from -1 to 1.
fn to_face(point: Point) -> (u64, f64, f64) {
    let [x, y, z] = point.0;
    let sizes = [x.abs(), y.abs(), z.abs()];
    let axis = match (sizes[0] > sizes[1], sizes[0] > sizes[2], sizes[1] > sizes[2]) {
        (true, true, _) => 0,
        (false, _, true) => 1,
        _ => 2,
    };
    match (axis, point.0[axis] < 0.0) {
        (0, false) => (0, y / x, z / x),
        (1, false) => (1, -x / y, z / y),
        (2, false) => (2, -x / z, -y / z),
        (0, true) => (3, z / x, y / x),
        (1, true) => (4, z / y, -x / y),
        _ => (5, -y / z, -x / z),
    }
}

fn from_face(face: u64, u: f64, v: f64) -> Point {
    Point(match face {
        0 => [1.0, u, v],
        1 => [-u, 1.0, v],
        2 => [-u, -v, 1.0],
        3 => [-1.0, -v, -u],
        4 => [v, -1.0, -u],
        _ => [v, u, -1.0],
    })
}

/// The row of a face's grid of smallest cells. The quadratic gives cells about the same size.
fn to_grid(u: f64) -> u64 {
    let part = match 0.0 <= u {
        true => 0.5 * (1.0 + 3.0 * u).sqrt(),
        false => 1.0 - 0.5 * (1.0 - 3.0 * u).sqrt(),
    };
    let rows = (1_u64 << LEVEL_MAX) as f64;
    (part * rows).floor().clamp(0.0, rows - 1.0) as u64
}

fn from_grid(part: f64) -> f64 {
    match 0.5 <= part {
        true => (4.0 * part * part - 1.0) / 3.0,
        false => (1.0 - 4.0 * (1.0 - part) * (1.0 - part)) / 3.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_points() {
        let cell = Cell::from_token("89c284").unwrap();
        assert_eq!(cell.level(), 9);
        let (lat, lon) = cell.center().to_degrees();
        assert!((lat - 40.812_535_546_624_574).abs() < 1e-9, "{lat}");
        assert!((lon + 73.559_412_827_282_73).abs() < 1e-9, "{lon}");
        assert_eq!(Cell::from_token("166b59").map(Cell::level), Some(10));
        for token in ["", "X", "0", "c1", "f", "89c2840000000000000", "é"] {
            assert_eq!(Cell::from_token(token), None, "{token:?}");
        }
    }

    #[test]
    fn center_lies_in_its_cell() {
        for lat in (-90..=90).step_by(15) {
            for lon in (-180..=180).step_by(15) {
                let point = Point::from_degrees(f64::from(lat) * 0.999, f64::from(lon) + 0.1);
                let leaf = Cell::containing(point);
                assert!(leaf.center().angle(point) < 1e-8, "{lat} {lon}");
                for level in 0..=LEVEL_MAX {
                    let cell = leaf.parent(level);
                    assert_eq!(cell.level(), level);
                    assert_eq!(Cell::from_token(&cell.to_token()), Some(cell));
                    assert_eq!(Cell::containing(cell.center()).parent(level), cell);
                }
            }
        }
    }

    #[test]
    fn polygons_contain_the_smaller_area() {
        let corner = |lat, lon| Point::from_degrees(lat, lon);
        let square =
            vec![corner(0.0, 0.0), corner(0.0, 10.0), corner(10.0, 10.0), corner(10.0, 0.0)];
        for points in [square.clone(), square.into_iter().rev().collect()] {
            let polygon = Polygon::new(points);
            assert!(polygon.contains(corner(5.0, 5.0)));
            for (lat, lon) in [(5.0, 11.0), (-1.0, 5.0), (-5.0, -175.0), (90.0, 0.0)] {
                assert!(!polygon.contains(corner(lat, lon)), "{lat} {lon}");
            }
            let degree = polygon.angle(corner(-1.0, 5.0)).to_degrees();
            assert!((degree - 1.0).abs() < 1e-9, "{degree}");
        }
    }
}
