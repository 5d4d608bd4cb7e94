//! Bytes of version 1 of the format, which must decode for ever, whatever encoders do later.

use codec::{Effort, Paging, TimestampsReader, ValuesReader, encode_timestamps, encode_values};

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |digit: u8| (digit as char).to_digit(16).expect("a hexadecimal digit") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Checks bytes of a column that is one page, whichever the paging.
#[track_caller]
fn check_values(hex: &str, values: &[f64], lens: &[u32], effort: Effort) {
    for paging in [Paging::Wide, Paging::Narrow] {
        check_paged_values(hex, values, lens, effort, paging);
    }
}

#[track_caller]
fn check_paged_values(hex: &str, values: &[f64], lens: &[u32], effort: Effort, paging: Paging) {
    if std::env::var_os("PRINT_GOLDEN").is_some() {
        let mut now = Vec::new();
        encode_values(values, lens, effort, &mut now);
        println!("{}", now.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    let mut back = Vec::new();
    let bytes = bytes(hex);
    let column = ValuesReader::open(&bytes, lens, paging).unwrap();
    column.read(0..lens.len(), &mut back).unwrap();
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&back), bits(values));
}

#[track_caller]
fn check_timestamps(hex: &str, timestamps: &[i64], lens: &[u32]) {
    if std::env::var_os("PRINT_GOLDEN").is_some() {
        let mut now = Vec::new();
        encode_timestamps(timestamps, lens, Effort::Dense, &mut now);
        println!("{}", now.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    let bytes = bytes(hex);
    let column = TimestampsReader::open(&bytes, Paging::Wide).unwrap();
    assert_eq!(column.lens(), lens);
    let mut back = Vec::new();
    column.read(0..lens.len(), &mut back).unwrap();
    assert_eq!(back, timestamps);
}

/// A walk that is the same for ever.
fn walk(len: usize) -> Vec<f64> {
    let mut state = 1u32;
    let mut value = 50;
    let mut values = Vec::with_capacity(len);
    for _ in 0..len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        value += i32::try_from(state >> 29).unwrap_or(0).count_ones() as i32 - 1;
        values.push(f64::from(value));
    }
    values
}

/// Numbers that rise now and then.
fn stairs(len: usize) -> Vec<f64> {
    (0..len).map(|idx| (idx / 50 + idx % 700 / 300) as f64).collect()
}

#[test]
fn several_pages_decode() {
    let values = stairs(2800);
    check_paged_values(
        "02050c003900b00f0807020180200005281b000500c071ab8058e7037ab3fceb2c1f5819e5556f551845c6fecdcf472603f6560893a577c6bf9ef1812153def430f20054128148e4037a67fceb191f1832e54d0f230f",
        &values,
        &[700; 4],
        Effort::Dense,
        Paging::Wide,
    );
    check_paged_values(
        "02050c003900b00f0807020180200000280000128148e4037a67fceb191f1832e54d0f230f001c128148e4037a67fceb191f1832e54d0f230f0038128148e4037a67fceb191f1832e54d0f230f0054128148e4037a67fceb191f1832e54d0f230f",
        &values,
        &[700; 4],
        Effort::Dense,
        Paging::Narrow,
    );
}

#[test]
fn constants_decode() {
    check_values("1005", &[-0.3; 4], &[4], Effort::Fast);
    check_values("01000000000000f87f", &[f64::NAN; 4], &[1, 3], Effort::Fast);
}

#[test]
fn decimals_decode() {
    check_values("22216419050060030002", &[0.5, 0.75, 1.0, 7.25, 7.5], &[3, 2], Effort::Fast);
}

#[test]
fn exceptions_decode() {
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    check_values(
        "0a01020000000000f07f02020200010037",
        &[1.0, 1.0, stale, 0.0, 1.0, stale],
        &[3, 3],
        Effort::Fast,
    );
}

#[test]
fn bits_decode() {
    check_values(
        "030200aad5aad5aad5aad57f0080808080808080100088f89cdacdb28cb08301",
        &[1.0 / 3.0, 2.0 / 3.0, -1e-300],
        &[3],
        Effort::Fast,
    );
}

#[test]
fn models_decode() {
    check_values(
        "02061500780018e8030a3ff8f9832740f0090409412018040864009a020008074df4e67c7e039069b583811d10017b1ea06e0275b0e5b4609261f27c2458898fcc75cc544b709e9e69487d8a5bf96aa0c017e224001ea7aa16e71dcb14020bcf6aebe0010bb41d55126f4b3b4fecf9d47d0832aa3de8c0ba1bc4343d231ea14cf8ad2137dd65a7c643974d28f91e229e2df65e2827792b2cbd05a6193b8e6b9c978f659416b2be69de37b33b54842619cca9672742bc66870336b432e126cc7ee3257235a738db94240f5f9eeb1e00",
        &walk(600),
        &[300, 0, 300],
        Effort::Dense,
    );
    let thirds: Vec<f64> = walk(300).iter().map(|value| value / 3.0).collect();
    check_values(
        "03115d00980040505555555555fdff0b50545555555555ffff05005655555555d5ffff005900000000000000800084aaaaaaaaaa0a00c04092aaaaaaaaaa0a006000a5aaaaaaaaaa0a0030000000000000000800084850555555555505000c0000d6aad5aad5aad5b080010e0e0c64f7bc108933e519036070dc6c7b0339c00905db41c145a2cacc6651cc6e1d0dcdc6a2a8be22975ec59d0924a4cd42383de8f10d7dfe7fad3405ec9db52b98e579822942c75736be3b394a955959692955b5aa95d54aadb655ad325bb56d15c0bb6c7b3d7e067857f5ce730040d5569504",
        &thirds,
        &[300],
        Effort::Dense,
    );
}

#[test]
fn timestamps_decode() {
    let grid: Vec<i64> = (0..5).map(|i| 1_700_000_000_000_000_000 + i * 10_000_000_000).collect();
    check_timestamps(
        "030301000a0100058080d0e2c6bfce972f80c8afa025000104",
        &[&grid[..], &grid[..]].concat(),
        &[5, 0, 5],
    );
    check_timestamps("02020204030201000401010103015b010f0a01", &[1, 5, 6, 9, 100, -7, 3], &[5, 2]);
}

/// Columns of encoders up to November 2026 whose integers are equal modulo 2^63 - 1: the header has
/// that multiplier, and the integers are not divided.
#[test]
fn undivided_columns_decode() {
    check_values(
        "022101ffffffffffffffff7f000100fdffffffffffffffff01",
        &[-1.0, i64::MIN as f64],
        &[2],
        Effort::Fast,
    );
    check_values(
        "032100ffffffffffffffff7f000000fdffffffffffffffff01",
        &[0.0, f64::from_bits(0x8000_0000_0000_0001)],
        &[2],
        Effort::Fast,
    );
    check_values(
        "0321ffffffffffffffffff01ffffffffffffffff7f00ffffffffffffffffff0100feffffffffffffffff01",
        &[-0.0, f64::from_bits(u64::MAX)],
        &[2],
        Effort::Fast,
    );
    check_timestamps(
        "0001000421ffffffffffffffffff01ffffffffffffffff7f00ffffffffffffffffff0100feffffffffffffffff01",
        &[i64::MIN, -1],
        &[2],
    );
}
