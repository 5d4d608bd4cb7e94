//! The binary: everything is in the library, see [`quipu::commands`].

/// Steady memory over months; see the feature's comment in `Cargo.toml`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    quipu::commands::run(std::env::args_os().collect())
}
