//! Places on Earth as cells: the bits of longitude and latitude, one after the other, are a number of
//! 52 bits, so that places that are close together have numbers that are. Which cells may hold what
//! is within an area.

/// Bits of longitude and of latitude.
const STEPS_MAX: u32 = 26;
const LONGITUDE_MAX: f64 = 180.0;
/// What the square projection of the web's maps shows.
const LATITUDE_MAX: f64 = 85.051_128_78;
const EARTH_RADIUS: f64 = 6_372_797.560_856;
/// Half the circumference of that projection, in meters.
const MERCATOR_MAX: f64 = 20_037_726.37;
const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

/// Bits of longitudes in a cell's number.
const LONGITUDE_BITS: u64 = 0xaaaa_aaaa_aaaa_aaaa;
/// Bits of latitudes.
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;

/// A place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Degrees to the east.
    pub longitude: f64,
    /// Degrees to the north.
    pub latitude: f64,
}

impl Place {
    /// Whether cells reach there.
    pub fn is_valid(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    /// Meters to another place on the sphere.
    pub fn distance(self, other: Place) -> f64 {
        let (latitude, other_latitude) = (radians(self.latitude), radians(other.latitude));
        let v = ((radians(other.longitude) - radians(self.longitude)) / 2.0).sin();
        if v == 0.0 {
            return self.distance_north(other);
        }
        let u = ((other_latitude - latitude) / 2.0).sin();
        let a = u * u + latitude.cos() * other_latitude.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }

    /// Meters to the other place's latitude.
    fn distance_north(self, other: Place) -> f64 {
        EARTH_RADIUS * (radians(other.latitude) - radians(self.latitude)).abs()
    }

    /// The number of its smallest cell.
    pub fn cell(self) -> u64 {
        Cell::at(self, STEPS_MAX).bits
    }

    /// The middle of the smallest cell of that number.
    pub fn of_cell(bits: u64) -> Place {
        let area = Cell { bits, steps: STEPS_MAX }.area();
        let longitude = (area.west + area.east) / 2.0;
        let latitude = (area.south + area.north) / 2.0;
        Place {
            longitude: longitude.clamp(-LONGITUDE_MAX, LONGITUDE_MAX),
            latitude: latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX),
        }
    }

    /// Its geohash: 11 letters of the usual alphabet, for latitudes up to the pole.
    pub fn geohash(self) -> [u8; 11] {
        const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = bits_of(self, STEPS_MAX, 90.0);
        std::array::from_fn(|at| {
            // 52 bits are ten letters and a rest, for which there is none.
            let shift = 52_usize.checked_sub((at + 1) * 5);
            LETTERS[shift.map_or(0, |shift| (bits >> shift & 0x1f) as usize)]
        })
    }
}

fn radians(degrees: f64) -> f64 {
    degrees * RADIANS_PER_DEGREE
}

fn degrees(radians: f64) -> f64 {
    radians / RADIANS_PER_DEGREE
}

fn bits_of(place: Place, steps: u32, latitude_max: f64) -> u64 {
    let scale = f64::from(1_u32 << steps);
    let part = |at: f64, max: f64| ((at + max) / (max + max) * scale) as u32;
    let (x, y) = (part(place.longitude, LONGITUDE_MAX), part(place.latitude, latitude_max));
    spread(y) | spread(x) << 1
}

/// Puts a zero before each bit.
fn spread(bits: u32) -> u64 {
    let mut bits = u64::from(bits);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, LATITUDE_BITS),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// Undoes [`spread`].
fn gather(bits: u64) -> u32 {
    let mut bits = bits & LATITUDE_BITS;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits as u32
}

/// A cell, in whose number `steps` bits each are of longitude and latitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    bits: u64,
    steps: u32,
}

/// What is between two longitudes and two latitudes.
#[derive(Clone, Copy, Debug)]
struct Area {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Cell {
    fn at(place: Place, steps: u32) -> Cell {
        Cell { bits: bits_of(place, steps, LATITUDE_MAX), steps }
    }

    fn area(self) -> Area {
        let scale = f64::from(1_u32 << self.steps);
        let edge = |at: f64, max: f64| -max + at / scale * (max + max);
        let (x, y) = (f64::from(gather(self.bits >> 1)), f64::from(gather(self.bits)));
        Area {
            west: edge(x, LONGITUDE_MAX),
            east: edge(x + 1.0, LONGITUDE_MAX),
            south: edge(y, LATITUDE_MAX),
            north: edge(y + 1.0, LATITUDE_MAX),
        }
    }

    /// The neighbour so many cells to the east and to the north, around the Earth.
    fn neighbour(self, east: i64, north: i64) -> Cell {
        let unused = 64 - self.steps * 2;
        let step = |bits: u64, full: u64, by: i64| {
            let (own, others) = (full >> unused, !full >> unused);
            // The other's bits carry what is added from one of its own bits to the next.
            let moved = match by {
                // The easternmost and northernmost edges are one cell beyond the last.
                0 => return bits & full,
                1.. => (bits & own).wrapping_add(others.wrapping_add(1)),
                _ => (bits & own | others).wrapping_sub(others.wrapping_add(1)),
            };
            moved & own
        };
        let longitude = step(self.bits, LONGITUDE_BITS, east);
        let latitude = step(self.bits, LATITUDE_BITS, north);
        Cell { bits: longitude | latitude, steps: self.steps }
    }

    /// The numbers of the smallest cells within: from the first to before the second.
    fn scores(self) -> (u64, u64) {
        let shift = (STEPS_MAX - self.steps) * 2;
        (self.bits << shift, (self.bits + 1) << shift)
    }
}

/// What is searched, in meters.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// What is not farther than that.
    Circle(f64),
    /// What is within so much width and height.
    Box(f64, f64),
}

/// Where is searched.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The middle.
    pub center: Place,
    /// What is around it.
    pub shape: Shape,
}

impl Search {
    /// How far a place is from the middle, if it is within.
    pub fn distance(self, place: Place) -> Option<f64> {
        match self.shape {
            Shape::Circle(radius) => {
                let distance = self.center.distance(place);
                (distance <= radius).then_some(distance)
            }
            Shape::Box(width, height) => {
                if height / 2.0 < place.distance_north(self.center) {
                    return None;
                }
                let beside = Place { longitude: self.center.longitude, ..place };
                if width / 2.0 < place.distance(beside) {
                    return None;
                }
                Some(self.center.distance(place))
            }
        }
    }

    fn bounds(self) -> Area {
        let (half_width, half_height) = match self.shape {
            Shape::Circle(radius) => (radius, radius),
            Shape::Box(width, height) => (width / 2.0, height / 2.0),
        };
        let Place { longitude, latitude } = self.center;
        let north = degrees(half_height / EARTH_RADIUS);
        // Meridians are closest to each other at the edge that is nearer to the pole.
        let polar = if latitude < 0.0 { latitude - north } else { latitude + north };
        let east = degrees(half_width / EARTH_RADIUS / radians(polar).cos());
        Area {
            west: longitude - east,
            east: longitude + east,
            south: latitude - north,
            north: latitude + north,
        }
    }

    /// Bits of a coordinate of cells so large that nine of them cover what is searched.
    fn steps(self) -> u32 {
        let mut radius = match self.shape {
            Shape::Circle(radius) => radius,
            Shape::Box(width, height) => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        };
        if radius == 0.0 {
            return STEPS_MAX;
        }
        let mut steps: i32 = 1;
        while radius < MERCATOR_MAX {
            radius *= 2.0;
            steps += 1;
        }
        steps -= 2;
        // Towards the poles cells are narrower.
        let latitude = self.center.latitude.abs();
        steps -= i32::from(66.0 < latitude) + i32::from(80.0 < latitude);
        u32::try_from(steps.max(1)).unwrap_or(1).min(STEPS_MAX)
    }

    /// The ranges of cells' numbers that may hold what is searched: the cell of the middle first, then
    /// those around it.
    pub fn ranges(self) -> Vec<(u64, u64)> {
        let bounds = self.bounds();
        let mut steps = self.steps();
        let mut cell = Cell::at(self.center, steps);
        let is_too_small = cell.neighbour(0, 1).area().north < bounds.north
            || bounds.south < cell.neighbour(0, -1).area().south
            || cell.neighbour(1, 0).area().east < bounds.east
            || bounds.west < cell.neighbour(-1, 0).area().west;
        if 1 < steps && is_too_small {
            steps -= 1;
            cell = Cell::at(self.center, steps);
        }
        let area = cell.area();
        let is_useless = |east: i64, north: i64| {
            2 <= steps
                && (east < 0 && area.west < bounds.west
                    || 0 < east && bounds.east < area.east
                    || north < 0 && area.south < bounds.south
                    || 0 < north && bounds.north < area.north)
        };
        let mut cells: Vec<Cell> = Vec::with_capacity(AROUND.len());
        for (east, north) in AROUND {
            let neighbour = cell.neighbour(east, north);
            // Around large areas neighbours are the same cells.
            if !is_useless(east, north) && cells.last() != Some(&neighbour) {
                cells.push(neighbour);
            }
        }
        cells.into_iter().map(Cell::scores).collect()
    }
}

/// A cell and those around it, in the order in which they are searched.
const AROUND: [(i64, i64); 9] =
    [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_places() {
        let palermo = Place { longitude: 13.361389, latitude: 38.115556 };
        assert_eq!(palermo.cell(), 3_479_099_956_230_698);
        assert_eq!(&Place::of_cell(palermo.cell()).geohash(), b"sqc8b49rny0");
        let catania = Place { longitude: 15.087269, latitude: 37.502669 };
        let (one, other) = (Place::of_cell(palermo.cell()), Place::of_cell(catania.cell()));
        assert_eq!(format!("{:.4}", one.distance(other)), "166274.1516");
    }

    #[test]
    fn neighbours_come_back() {
        let mut random = rng::Random::seeded(3);
        for _ in 0..1_000 {
            let steps = 1 + random.below(26) as u32;
            let cell = Cell { bits: random.next() >> (64 - steps * 2), steps };
            for (east, north) in AROUND {
                let neighbour = cell.neighbour(east, north);
                assert_eq!(neighbour.neighbour(-east, -north), cell);
                assert_eq!(neighbour == cell, (east, north) == (0, 0));
            }
        }
    }

    #[test]
    fn what_is_within_is_in_the_ranges() {
        let mut random = rng::Random::seeded(5);
        let mut unit = || random.below(1 << 30) as f64 / f64::from(1 << 30);
        let mut place = |spread: f64, around: Place| Place {
            longitude: around.longitude + (unit() - 0.5) * spread,
            latitude: around.latitude + (unit() - 0.5) * spread / 2.0,
        };
        let origin = Place { longitude: 0.0, latitude: 0.0 };
        for step in 0..20_000 {
            let center = place(340.0, origin);
            let near = place(if step % 2 == 0 { 20.0 } else { 0.1 }, center);
            if !near.is_valid() || !center.is_valid() {
                continue;
            }
            let near = Place::of_cell(near.cell());
            let distance = center.distance(near);
            for shape in
                [Shape::Circle(distance * 1.01), Shape::Box(distance * 2.5, distance * 2.5)]
            {
                let search = Search { center, shape };
                assert!(search.distance(near).is_some());
                let cell = near.cell();
                let found = search.ranges().iter().any(|(from, to)| (*from..*to).contains(&cell));
                assert!(found, "{search:?} {near:?}");
            }
        }
    }
}
