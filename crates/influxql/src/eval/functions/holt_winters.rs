//! `holt_winters`: a series carried on, with a trend that fades and seasons that multiply, fitted by the
//! simplex method of Nelder and Mead. Sums and products are in InfluxDB's order: a search of a thousand
//! steps makes other numbers of another last bit.

use crate::eval::point::Point;
use crate::eval::{Evaluator, Result};
use crate::value::Value;

/// What a series is carried on by.
pub struct Forecast {
    /// Values to come.
    pub horizon: usize,
    /// Points of a season; less than two are none.
    pub season: usize,
    /// Nanoseconds between two points.
    pub interval: i64,
    /// Whether what the fit says of the past is wanted, too.
    pub has_fit: bool,
}

/// Where the level and the trend of a series without seasons begin, as a share of what is seen first.
const WEIGHT: f64 = 0.5;
/// The search is over when the values of the corners differ by less.
const EPSILON: f64 = 1.0e-4;
const STEPS_MAX: usize = 1_000;
/// Each of the four weights starts from here, and from a step above.
const GUESS_MIN: f64 = 0.3;
const GUESS_MAX: f64 = 1.0;
const GUESS_STEP: f64 = 0.4;
/// Weights, level and trend; the seasons come behind them.
const SEASONS_AT: usize = 6;
/// Values that are worked out between two looks at the clock.
const VALUES_BETWEEN_LOOKS: usize = 1 << 20;

impl Forecast {
    /// The points of the forecast; none of less than two points, or less than a season.
    ///
    /// # Errors
    /// When it takes too long or too much memory.
    pub fn points(&self, evaluator: &Evaluator<'_>, points: &[Point]) -> Result<Vec<Point>> {
        let points: Vec<(i64, f64)> =
            points.iter().filter_map(|p| Some((p.time, p.value.as_f64()?))).collect();
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Ok(Vec::new());
        };
        if points.len() < 2 || (self.is_seasonal() && points.len() < self.season) {
            return Ok(Vec::new());
        }
        let (start, stop) = (self.rounded(first.0), self.rounded(last.0));
        let Some(count) = usize::try_from(stop.saturating_sub(start) / self.interval).ok() else {
            return Ok(Vec::new());
        };
        if count == 0 {
            return Ok(Vec::new());
        }
        let parameters = SEASONS_AT + if self.is_seasonal() { self.season } else { 0 };
        // Values are an eighth of a point; of the simplex there are as many corners as sides.
        evaluator.count((count.saturating_add(self.horizon)).saturating_mul(2))?;
        evaluator.count(parameters.saturating_mul(parameters) / 4)?;
        let observed = self.observed(&points);
        if self.is_seasonal() && observed.len() < self.season {
            return Ok(Vec::new());
        }
        let mut fit = Fit { observed: &observed, evaluator, left: VALUES_BETWEEN_LOOKS };
        let mut best = fit.best(self.start(&observed))?;
        let found = fit.forecast(self.horizon, &mut best)?;
        let (skipped, time) = match self.has_fit {
            true => (0, first.0),
            false => (observed.len(), last.0.saturating_add(self.interval)),
        };
        let at = |idx: usize| time.saturating_add(self.interval.saturating_mul(idx as i64));
        let values = found.into_iter().skip(skipped).enumerate();
        let values = values.filter(|(_, value)| !value.is_nan());
        Ok(values.map(|(idx, value)| Point::new(at(idx), Value::Float(value))).collect())
    }

    fn is_seasonal(&self) -> bool {
        2 <= self.season
    }

    /// The time of the nearest whole interval.
    fn rounded(&self, time: i64) -> i64 {
        let down = time / self.interval;
        match self.interval / 2 < time % self.interval {
            true => (down + 1).saturating_mul(self.interval),
            false => down * self.interval,
        }
    }

    /// A value for each interval, not a number where there is none.
    fn observed(&self, points: &[(i64, f64)]) -> Vec<f64> {
        let mut out = Vec::new();
        let mut time = 0;
        for (at, value) in points {
            let rounded = self.rounded(*at);
            if out.is_empty() {
                time = rounded;
            } else if rounded <= time {
                continue;
            } else {
                time += self.interval;
                while time < rounded {
                    out.push(f64::NAN);
                    time += self.interval;
                }
            }
            out.push(*value);
        }
        out
    }

    /// Level, trend and seasons to begin with, behind the weights.
    fn start(&self, observed: &[f64]) -> Vec<f64> {
        let at = |idx: usize| observed.get(idx).copied().filter(|value| !value.is_nan());
        let season = self.season;
        let mut out = vec![0.0; SEASONS_AT];
        if !self.is_seasonal() {
            let first = at(0).unwrap_or(0.0);
            out[4] = WEIGHT * first;
            out[5] = at(1).map_or(0.0, |second| WEIGHT * (second - first));
            return out;
        }
        let (mut level, mut trend) = (0.0, 0.0);
        for value in (0..season).filter_map(at) {
            level += (1.0 / season as f64) * value;
        }
        for (now, then) in (0..season).filter_map(|idx| Some((at(idx)?, at(season + idx)?))) {
            trend += 1.0 / (season * season) as f64 * (then - now);
        }
        (out[4], out[5]) = (level, trend);
        out.extend((0..season).map(|idx| at(idx).map_or(0.0, |value| value / level)));
        out
    }
}

struct Fit<'f, 'e> {
    observed: &'f [f64],
    evaluator: &'f Evaluator<'e>,
    /// Values until the next look at the clock.
    left: usize,
}

impl Fit<'_, '_> {
    /// The parameters that fit best, of searches from several weights.
    fn best(&mut self, mut start: Vec<f64>) -> Result<Vec<f64>> {
        let mut guesses = Vec::new();
        let mut guess = GUESS_MIN;
        while guess < GUESS_MAX {
            guesses.push(guess);
            guess += GUESS_STEP;
        }
        let mut best: Option<(f64, Vec<f64>)> = None;
        for idx in 0..guesses.len().pow(4) {
            let mut rest = idx;
            for place in (0..4).rev() {
                start[place] = guesses[rest % guesses.len()];
                rest /= guesses.len();
            }
            let (error, found) = self.search(&start)?;
            if best.as_ref().is_none_or(|(least, _)| error < *least) {
                best = Some((error, found));
            }
        }
        Ok(best.map(|(_, found)| found).unwrap_or_default())
    }

    /// The values that parameters say, of what is observed and `horizon` more. Seasons of the parameters
    /// are those of the end afterwards.
    fn forecast(&mut self, horizon: usize, parameters: &mut [f64]) -> Result<Vec<f64>> {
        let len = self.observed.len() + horizon;
        self.left = match self.left.checked_sub(len) {
            Some(left) => left,
            None => {
                self.evaluator.source.check()?;
                VALUES_BETWEEN_LOOKS.saturating_sub(len)
            }
        };
        let (head, seasons) = parameters.split_at_mut(SEASONS_AT);
        for weight in &mut head[..4] {
            *weight = weight.clamp(0.0, 1.0);
        }
        let &mut [alpha, beta, gamma, phi, mut level, mut trend] = head else {
            return Ok(Vec::new());
        };
        let count = seasons.len();
        let mut value = self.observed.first().copied().unwrap_or(f64::NAN);
        let mut fade = phi;
        let mut out = Vec::with_capacity(len);
        out.push(value);
        for step in 1..len {
            let (before, now) = match count {
                0 => (1.0, 1.0),
                _ => {
                    let at = 2 * (step - 1);
                    (seasons[at % count], seasons[(at + step % count) % count])
                }
            };
            let carried = level + phi * trend;
            let risen = alpha * (value / before) + (1.0 - alpha) * carried;
            let turned = beta * (risen - level) + (1.0 - beta) * phi * trend;
            let season = gamma * (value / carried) + (1.0 - gamma) * before;
            value = (risen + fade * turned) * now;
            (level, trend) = (risen, turned);
            fade += power(phi, step as u64);
            if count != 0 {
                seasons[(2 * step - 2 + count) % count] = season;
            }
            out.push(value);
        }
        Ok(out)
    }

    /// How far the parameters are from what is observed: the sum of the squares.
    fn error(&mut self, parameters: &mut [f64]) -> Result<f64> {
        let found = self.forecast(0, parameters)?;
        let mut sum = 0.0;
        for (found, observed) in found.iter().zip(self.observed) {
            if observed.is_nan() {
                continue;
            }
            if found.is_nan() {
                return Ok(f64::INFINITY);
            }
            let difference = found - observed;
            sum += difference * difference;
        }
        Ok(sum)
    }

    /// Walks a simplex down to where the error is least, from `start`.
    fn search(&mut self, start: &[f64]) -> Result<(f64, Vec<f64>)> {
        let mut corners = simplex(start);
        let mut errors = Vec::with_capacity(corners.len());
        for corner in &mut corners {
            errors.push(self.error(corner)?);
        }
        for _ in 0..STEPS_MAX {
            self.step(&mut corners, &mut errors)?;
            if spread(&errors) < EPSILON {
                break;
            }
        }
        let best = least(&errors);
        let found = corners[best].clone();
        Ok((self.error(&mut corners[best])?, found))
    }

    fn step(&mut self, corners: &mut [Vec<f64>], errors: &mut [f64]) -> Result<()> {
        self.evaluator.source.check()?;
        let size = corners.len() - 1;
        let (mut worst, best) = (0, least(errors));
        for idx in 0..=size {
            worst = if errors[worst] < errors[idx] { idx } else { worst };
        }
        let mut second = best;
        for idx in 0..=size {
            let is_second = errors[second] < errors[idx] && errors[idx] < errors[worst];
            second = if is_second { idx } else { second };
        }
        let center: Vec<f64> = (0..size)
            .map(|side| {
                let others = corners.iter().enumerate().filter(|(idx, _)| *idx != worst);
                others.fold(0.0, |sum, (_, corner)| sum + corner[side]) / size as f64
            })
            .collect();
        // The worst corner's image on the other side, and the way from the center to it.
        let between = |to: &[f64], share: f64| -> Vec<f64> {
            center.iter().zip(to).map(|(center, to)| center + share * (to - center)).collect()
        };
        let away = |from: &[f64], share: f64| -> Vec<f64> {
            center.iter().zip(from).map(|(center, from)| center + share * (center - from)).collect()
        };
        let mut image = away(&corners[worst], 1.0);
        let error = self.error(&mut image)?;
        if error < errors[second] && errors[best] <= error {
            corners[worst].copy_from_slice(&image);
            errors[worst] = error;
        }
        if error < errors[best] {
            let mut further = between(&image, 2.0);
            let further_error = self.error(&mut further)?;
            let is_better = further_error < error;
            corners[worst].copy_from_slice(if is_better { &further } else { &image });
            errors[worst] = if is_better { further_error } else { error };
        }
        // Where all corners are equal, the worst is the second, too: what was just put there counts.
        if error < errors[second] {
            return Ok(());
        }
        let mut nearer = match error < errors[worst] {
            true => between(&image, 0.5),
            false => inside(&center, &corners[worst]),
        };
        let nearer_error = self.error(&mut nearer)?;
        if nearer_error < errors[worst] {
            (corners[worst], errors[worst]) = (nearer, nearer_error);
            return Ok(());
        }
        let middle = corners[best].clone();
        for (_, corner) in corners.iter_mut().enumerate().filter(|(idx, _)| *idx != best) {
            for (side, middle) in corner.iter_mut().zip(&middle) {
                *side = middle + (*side - middle) / 2.0;
            }
        }
        errors[worst] = self.error(&mut corners[worst])?;
        errors[second] = self.error(&mut corners[second])?;
        Ok(())
    }
}

/// Half way from the center to a corner.
fn inside(center: &[f64], corner: &[f64]) -> Vec<f64> {
    center.iter().zip(corner).map(|(center, corner)| center - 0.5 * (center - corner)).collect()
}

/// A corner at `start`, and one more for each side.
fn simplex(start: &[f64]) -> Vec<Vec<f64>> {
    let size = start.len() as f64;
    let near = ((size + 1.0).sqrt() - 1.0) / (size * 2.0_f64.sqrt());
    let far = ((size + 1.0).sqrt() - 1.0 + size) / (size * 2.0_f64.sqrt());
    let mut corners = vec![start.to_vec()];
    for idx in 0..start.len() {
        let sides = start.iter().enumerate();
        corners.push(sides.map(|(at, side)| if at == idx { far } else { near } + side).collect());
    }
    corners
}

fn least(errors: &[f64]) -> usize {
    let mut least = 0;
    for (idx, error) in errors.iter().enumerate() {
        least = if *error < errors[least] { idx } else { least };
    }
    least
}

/// How far the errors of the corners are apart.
fn spread(errors: &[f64]) -> f64 {
    let size = (errors.len() - 1) as f64;
    let mean = errors.iter().fold(0.0, |sum, error| sum + error) / errors.len() as f64;
    errors.iter().fold(0.0, |sum, error| sum + (error - mean) * (error - mean) / size).sqrt()
}

/// A number of 0 to 1 multiplied by itself, its last bits as Go's `math.Pow` has them.
fn power(base: f64, exponent: u64) -> f64 {
    const EXPONENT_MIN: i64 = -(1 << 12);
    if exponent == 0 || base == 1.0 {
        return 1.0;
    }
    if exponent == 1 || base == 0.0 || base.is_nan() {
        return base;
    }
    let (mut square, mut square_exponent) = halved(base);
    let (mut found, mut found_exponent, mut rest) = (1.0, 0, exponent);
    while rest != 0 {
        if square_exponent < EXPONENT_MIN {
            return 0.0;
        }
        if rest & 1 == 1 {
            found *= square;
            found_exponent += square_exponent;
        }
        square *= square;
        square_exponent *= 2;
        if square < 0.5 {
            square += square;
            square_exponent -= 1;
        }
        rest >>= 1;
    }
    // In two steps: what is very small is rounded once, at its end.
    let half = (found_exponent / 2).clamp(-1_000, 0) as i32;
    let other = (found_exponent - i64::from(half)).clamp(-2_000, 0) as i32;
    found * 2.0_f64.powi(half) * 2.0_f64.powi(other)
}

/// A number as one of 0.5 to 1 and an exponent of 2.
fn halved(number: f64) -> (f64, i64) {
    let mut exponent = 0;
    let mut number = number;
    while number < 0.5 {
        number *= 2.0;
        exponent -= 1;
    }
    (number, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers() {
        assert_eq!(power(0.5, 10), 1.0 / 1024.0);
        assert_eq!(power(0.3, 0), 1.0);
        assert_eq!(power(0.0, 5), 0.0);
        assert_eq!(power(1.0, 7), 1.0);
        assert!((power(0.9, 50) - 0.9_f64.powi(50)).abs() < 1e-15);
        assert_eq!(power(0.1, 1 << 40), 0.0);
    }
}
