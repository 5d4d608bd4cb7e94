//! The page at `/`: a handful of files, part of the binary, with no request to anywhere else.

use crate::http::answer::{Answer, Content};
use crate::http::request::Request;
use app::App;
use hyper::StatusCode;
use net::failure::Failure;
use std::sync::Arc;

/// Only what this server sends may run or be shown.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Asset {
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! asset {
    ($path:literal, $content_type:expr) => {
        Asset {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../../ui/", $path)),
        }
    };
}

const INDEX: Asset = asset!("index.html", "text/html; charset=utf-8");
const ICON: Asset = asset!("icon.svg", "image/svg+xml");

const ASSETS: &[Asset] = &[
    ICON,
    asset!("style.css", STYLE),
    asset!("src/main.js", JAVASCRIPT),
    asset!("src/api.js", JAVASCRIPT),
    asset!("src/format.js", JAVASCRIPT),
    asset!("src/completion.js", JAVASCRIPT),
    asset!("src/dialect.js", JAVASCRIPT),
    asset!("src/activity.js", JAVASCRIPT),
    asset!("src/graph.js", JAVASCRIPT),
    asset!("src/table.js", JAVASCRIPT),
    asset!("src/overview.js", JAVASCRIPT),
    asset!("vendor/uPlot.esm.js", JAVASCRIPT),
    asset!("vendor/uPlot.min.css", STYLE),
    asset!("vendor/uPlot.LICENSE.txt", "text/plain; charset=utf-8"),
];

/// `/`
pub fn index(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(serve(&INDEX))
}

/// `/ui/...`
pub fn file(_app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let asset = ASSETS.iter().find(|asset| asset.path == request.captured);
    asset.map(serve).ok_or_else(|| Failure::not_found("there is no such file"))
}

/// `/favicon.ico`
pub fn icon(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(serve(&ICON))
}

fn serve(asset: &Asset) -> Answer {
    // A copy, so that it can be compressed: the page is fetched once per visit.
    let content = Content::Bytes(asset.bytes.to_vec());
    let answer = Answer {
        status: StatusCode::OK,
        content_type: asset.content_type,
        headers: Vec::new(),
        late_header: None,
        content,
    };
    answer
        .with_header("content-security-policy", POLICY)
        .with_header("x-content-type-options", "nosniff")
        .with_header("referrer-policy", "no-referrer")
        .with_header("cache-control", "no-cache")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_nobody_else_for_anything() {
        for asset in ASSETS.iter().chain([&INDEX]) {
            let text = String::from_utf8_lossy(asset.bytes);
            let is_ours = !asset.path.starts_with("vendor/");
            for foreign in ["http://", "https://"] {
                let found = text
                    .match_indices(foreign)
                    .any(|(at, _)| !text[at..].starts_with("http://www.w3.org/"));
                assert!(!is_ours || !found, "{} mentions {foreign}", asset.path);
            }
        }
    }

    #[test]
    fn every_file_that_the_page_names_is_there() {
        let index = String::from_utf8_lossy(INDEX.bytes);
        let mut named = 0;
        for piece in index.split("\"/ui/").skip(1) {
            let path = piece.split('"').next().expect("a closing quote");
            assert!(ASSETS.iter().any(|asset| asset.path == path), "{path}");
            named += 1;
        }
        assert!(3 <= named, "style, library's style, script");
        assert!(!index.contains("style=\""), "the policy forbids inline styles");
    }
}
