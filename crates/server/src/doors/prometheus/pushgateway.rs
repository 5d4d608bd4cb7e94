//! Pushgateway's paths: text in, with the labels of its group in the path.

use super::exposition;
use super::push_path::labels_of_path;
use crate::app::App;
use crate::doors::http::answer::Answer;
use crate::doors::http::request::Request;
use crate::failure::Failure;
use hyper::StatusCode;
use std::sync::Arc;

/// `POST /metrics/job/...`, where Pushgateway's clients expect 200.
pub fn push(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let labels = labels_of_path(&request.captured)?;
    let refusal = exposition::store(app, request, labels)?;
    Ok(refusal.unwrap_or_else(|| Answer::bytes(StatusCode::OK, "", Vec::new())))
}
