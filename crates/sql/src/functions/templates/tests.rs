//! Templates beside what PostgreSQL 15 makes of them.

use crate::functions::templates::decimals::{Decimal, Float};
use crate::functions::templates::{numbers, written};
use crate::types::text::shown::Length;
use crate::types::time::zones::Zone;

#[track_caller]
fn of_decimal(units: i128, scale: i8, template: &str, expected: &str) {
    let shown = numbers::number(&Decimal { units, scale }, template);
    assert_eq!(shown.unwrap_or_else(|error| error.code.into()), expected, "{units} {template}");
}

/// Answers are PostgreSQL 15's.
#[test]
fn numbers_are_those_of_postgresql() {
    for (units, scale, template, expected) in [
        (1_234_567, 3, "9,999.99", " 1,234.57"),
        (-12, 0, "999", " -12"),
        (12, 0, "00999", " 00012"),
        (5, 1, "FM990.00", "0.50"),
        (12, 0, "S99", "+12"),
        (-5, 0, "S99", " -5"),
        (5, 0, "9th", " 5th"),
        (1, 1, "9.9", "  .1"),
        (123, 0, "99", " ##"),
        (-12, 0, "99MI", "12-"),
        (-15, 1, "9.9PR", "<1.5>"),
        (0, 0, "0.00", " 0.00"),
        (485, 0, "RN", "        CDLXXXV"),
        (485, 0, "FMrn", "cdlxxxv"),
        (12, 0, "99V9", " 120"),
        (1_234_567, 0, "9G999G999", " 1,234,567"),
        (148, 0, "\"Good number:\"999", "Good number: 148"),
        (1_234, 3, "9.9EEEE", " 1.2e+00"),
        (5, 0, "9.9.9", "42601"),
    ] {
        of_decimal(units, scale, template, expected);
    }
    let float = |number: f64, template: &str| numbers::number(&Float(number), template).unwrap();
    assert_eq!(float(1234.5, "FM999G999D00"), "1,234.50");
    assert_eq!(float(0.1, "FM9.9"), ".1");
    assert_eq!(float(f64::NAN, "999"), " NaN");
    assert_eq!(float(f64::INFINITY, "999"), " ###");
    let read = |text: &str, template: &str| numbers::read(text, template).unwrap();
    assert_eq!(read("12,454.8-", "99G999D9S").as_deref(), Some("-12454.8"));
    assert_eq!(read("x", "99"), None);
}

#[test]
fn times_are_those_of_postgresql() {
    // 2024-02-29 13:04:05.678
    let at = Zone::utc().at(1_709_211_845_678_000).unwrap();
    let place = written::Place { offset: 7200, zone: "CEST" };
    for (template, expected) in [
        ("YYYY-MM-DD HH24:MI:SS.MS TZ", "2024-02-29 13:04:05.678 CEST"),
        ("FMDay, FMDDth Mon YYYY HH12:MI am", "Thursday, 29th Feb 2024 01:04 pm"),
        ("Q WW IW ID D J DDD", "1 09 09 4 5 2460370 060"),
        ("DAY|MONTH|Month", "THURSDAY |FEBRUARY |February "),
        ("YYY YY Y Y,YYY IYYY CC W SSSS US FF1", "024 24 4 2,024 2024 21 5 47045 678000 6"),
        ("OF TZH:TZM RM rm A.D. bc", "+02 +02:00 II   ii   A.D. ad"),
        ("\"Today is\" DD", "Today is 29"),
    ] {
        assert_eq!(written::time(at.clock, place, template).unwrap(), expected, "{template}");
    }
    let length = Length { months: 14, days: 3, micros: 93_784_500_000 };
    for (template, expected) in [
        ("YYYY MM DD HH24:MI:SS.MS", "0001 02 03 26:03:04.500"),
        ("HH12 Q", "02 1"),
        ("Day", "22007"),
    ] {
        let shown = written::interval(length, template).unwrap_or_else(|error| error.code.into());
        assert_eq!(shown, expected, "{template}");
    }
}
