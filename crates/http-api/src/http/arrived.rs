//! A request whose head is read and whose body is not: what is looked at before it costs anything.

use super::request::Params;
use super::router::Route;
use hyper::header::HeaderMap;
use hyper::http::uri::Authority;
use hyper::{Method, Version};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A request whose head is read.
pub(super) struct Arrived {
    pub route: &'static Route,
    pub method: Method,
    pub version: Version,
    /// Of the request's target: HTTP/2's `:authority`, or that of a target with a scheme.
    pub authority: Option<Authority>,
    pub captured: String,
    pub params: Params,
    pub headers: HeaderMap,
    pub started: Instant,
    pub peer: Option<SocketAddr>,
    pub cancelled: Arc<AtomicBool>,
}
