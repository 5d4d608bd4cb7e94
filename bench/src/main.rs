//! The binary `quipu-bench`; all of it is in the library of the same name.

use quipu_bench::commands;
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(&commands::command().get_matches()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
