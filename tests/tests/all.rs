//! All end-to-end tests in one program.

mod bad_input;
mod crash;
mod curl;
mod damage;
mod exemplars;
mod experimental;
mod graphite;
mod influx_client;
mod metricsql;
mod native_histograms;
mod native_histograms_prometheus;
mod page;
mod partitions;
mod prometheus;
mod queries;
mod remote_read;
mod remote_write;
mod result_cache;
mod series_limits;
mod visibility;
