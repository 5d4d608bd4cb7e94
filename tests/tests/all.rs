//! All end-to-end tests in one program.

#![allow(clippy::disallowed_methods, reason = "tests own their files and threads")]

mod bad_input;
mod crash;
mod curl;
mod damage;
mod exemplars;
mod experimental;
mod graphite;
mod hosts;
mod influx_client;
mod influx_sockets;
mod metricsql;
mod native_histograms;
mod native_histograms_prometheus;
mod page;
mod partitions;
mod postgres;
mod postgres_answers;
mod postgres_catalog;
mod postgres_clients;
mod postgres_copy_rows;
mod postgres_frames;
mod postgres_insert;
mod postgres_limits;
mod postgres_parquet;
mod postgres_promscale;
mod postgres_tables;
mod postgres_timescale;
mod prometheus;
mod promql_scripts;
mod pushgateway;
mod queries;
mod redis_clients;
mod redis_hostile;
mod redis_cold;
mod redis_moving;
mod redis_pipelines;
mod redis_replication;
mod redis_timeseries;
mod remote_read;
mod remote_write;
mod result_cache;
mod series_limits;
mod start_timestamps;
mod visibility;
