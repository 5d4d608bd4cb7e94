//! One request from head to answer: route, credentials, body, turn, door, count.
//!
//! ```text
//! async:   route > host? > cross-site? > credentials > body > gate ─┐
//! worker:                                       door > stream ─► head ─► async: count, answer
//! ```
//!
//! Doors are plain code; they run on worker threads, where blocking and panicking are allowed. A
//! brief door's first try runs where the request arrived (`docs/decisions/0007`).

use super::Http;
use super::answer::{Answer, Content, Wording, status_of};
use super::arrived::Arrived;
use super::connection::HttpConnection;
use super::credentials::check_credentials;
use super::request::body::{ReplyBody, drain, receive};
use super::request::form_body::Form;
use super::request::label_filters::label_filters;
use super::request::parameters::check_parameters;
use super::request::selection;
use super::request::{Params, Request};
use super::router::{self, BriefDoor, Class, Route};
use super::site::{check_host, check_site};
use super::stream::{Encoding, Framing, Sending, Sent, failure_response};
use app::App;
use hyper::Response;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT_ENCODING, ALLOW, CONTENT_TYPE, HeaderValue};
use net::admission::Permit;
use net::failure::{Failure, Kind};
use net::telemetry::Limit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Bytes of a form: queries and long lists of matchers.
const FORM_SIZE_MAX: usize = 10 << 20;

/// Serves one request.
pub async fn exchange(
    http: Arc<Http>,
    connection: Arc<HttpConnection>,
    request: hyper::Request<Incoming>,
) -> Response<ReplyBody> {
    let in_flight = connection.begin_request();
    let started = Instant::now();
    let (head, mut incoming) = request.into_parts();
    let cancelled = Arc::new(AtomicBool::new(false));
    let gone = GoneGuard(Some((http.clone(), cancelled.clone())));
    let path = router::without_empty_start(head.uri.path());
    let (index, wording, result) = match router::find(http.routes, &head.method, path) {
        Ok((index, captured)) => {
            let route = &http.routes[index];
            let mut params = Params::parse(head.uri.query().unwrap_or(""));
            if router::is_metricsql(path) {
                params.push_first("dialect", "metricsql");
            }
            let arrived = Arrived {
                route,
                method: head.method,
                captured: captured.to_string(),
                params,
                version: head.version,
                authority: head.uri.authority().cloned(),
                headers: head.headers,
                started,
                peer: connection.connection.peer,
                cancelled,
            };
            (index, route.wording, serve(&http, &connection, arrived, &mut incoming).await)
        }
        Err(failure) => (http.routes.len(), router::wording_of(path), Err(failure)),
    };
    let response = match result {
        Ok(response) => response,
        Err(failure) => {
            if !incoming.is_end_stream() {
                drain(&mut incoming).await;
            }
            let mut response = failure_answer(&http.app, wording, &failure);
            if failure.kind == Kind::WrongMethod {
                let methods = router::methods_of(http.routes, path).join(", ");
                if let Ok(value) = HeaderValue::from_str(&methods) {
                    response.headers_mut().insert(ALLOW, value);
                }
            }
            response
        }
    };
    gone.defuse();
    http.counters.answered(index, response.status().as_u16(), started.elapsed());
    response.map(|body| body.telling(connection.answer(in_flight)))
}

/// Notices a client that goes away while its request is being served: the future is dropped then.
struct GoneGuard(Option<(Arc<Http>, Arc<AtomicBool>)>);

impl GoneGuard {
    fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for GoneGuard {
    fn drop(&mut self) {
        if let Some((http, cancelled)) = &self.0 {
            cancelled.store(true, Relaxed);
            http.counters.clients_gone.add(1);
        }
    }
}

fn failure_answer(app: &App, wording: Wording, failure: &Failure) -> Response<ReplyBody> {
    if let Some(limit) = failure.limit {
        app.telemetry.limit_hit(limit);
    }
    let mut response = failure_response(wording.answer(failure));
    if failure.kind == Kind::Unauthorized {
        let value = HeaderValue::from_static("Basic realm=\"quipu\"");
        response.headers_mut().insert("www-authenticate", value);
    }
    response
}

async fn serve(
    http: &Arc<Http>,
    connection: &HttpConnection,
    mut arrived: Arrived,
    incoming: &mut Incoming,
) -> Result<Response<ReplyBody>, Failure> {
    let (app, route) = (&http.app, arrived.route);
    check_host(&app.config.http.hosts, &arrived)?;
    check_site(&arrived)?;
    check_credentials(http, connection, &arrived).await?;
    let received = if incoming.is_end_stream() {
        None
    } else {
        let http = &app.config.http;
        let size_max = match route.class {
            Class::Insert => http.body_size_max,
            _ => FORM_SIZE_MAX.min(http.body_size_max),
        };
        Some(receive(incoming, size_max, http, &app.body_memory, &app.buffers).await?)
    };
    let (mut body, share) = received.map_or((Vec::new(), None), |r| (r.bytes, r.share));
    let content_type = arrived.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if let Some(form) = content_type.and_then(Form::of).filter(|_| route.class != Class::Insert) {
        form.append(&body, &mut arrived.params)?;
        app.buffers.give_back(std::mem::take(&mut body));
    }
    check_escapes(route, &mut arrived.params)?;
    check_parameters(&arrived)?;
    let filters = label_filters(route, &arrived.params)?;
    let permit = match route.class {
        Class::Insert => Some(app.inserts.enter().await?),
        Class::Query => Some(app.queries.enter().await?),
        Class::Control => Some(app.controls.enter().await?),
        Class::Order | Class::Inline => None,
    };
    let request = Request {
        method: arrived.method,
        captured: arrived.captured,
        params: arrived.params,
        filters,
        headers: arrived.headers,
        body,
        now: app.vfs.now(),
        started: arrived.started,
        peer: arrived.peer,
        cancelled: arrived.cancelled,
    };
    if route.class == Class::Inline {
        let answer = (route.door)(app, &request)?;
        return Ok(failure_response(answer));
    }
    run(http, route, request, Held { permit, share, framing: Framing::of(arrived.version) }).await
}

/// Parameters of Prometheus' queries. It does not see one with a malformed escape.
const QUERY_PARAMETERS: &[&str] =
    &["query", "time", "start", "end", "step", "limit", "timeout", "lookback_delta", "stats"];

/// Handles malformed escapes as Prometheus does: handlers of queries do not see the parameter, others
/// refuse the request. Other products' paths take it as it stands.
fn check_escapes(route: &Route, params: &mut Params) -> Result<(), Failure> {
    let Some(fault) = params.fault().filter(|_| route.wording == Wording::Prometheus) else {
        return Ok(());
    };
    let is_query = route.pattern.starts_with("/api/v1/query");
    if !is_query || !params.malformed_names().all(|name| QUERY_PARAMETERS.contains(&name)) {
        return Err(Failure::bad_input(format!("error parsing form values: {fault}")));
    }
    params.drop_malformed();
    Ok(())
}

/// What a request holds until its answer is complete, and how the client finds the end of that.
struct Held {
    permit: Option<Permit>,
    share: Option<OwnedSemaphorePermit>,
    framing: Framing,
}

/// Runs the door on a worker thread and waits for the head of its answer.
async fn run(
    http: &Arc<Http>,
    route: &'static Route,
    request: Request,
    held: Held,
) -> Result<Response<ReplyBody>, Failure> {
    let (sender, head) = oneshot::channel();
    let mut sending = Some(Sending {
        encoding: encoding(route, &request),
        wording: route.wording,
        write_timeout: http.app.config.http.write_timeout,
        runtime: Handle::current(),
        framing: held.framing,
        permit: held.permit,
        head: sender,
    });
    let share = held.share;
    if let Some(answer) = route.brief.and_then(|brief| attempt(brief, http, route, &request)) {
        let Some(sending) = sending.take() else { unreachable!("just made") };
        finish(http, sending.send(answer));
        return head.await.map_err(|_| lost());
    }
    let http = http.clone();
    tokio::task::spawn_blocking(move || {
        let work = || store::waiting(|| work(&http, route, &request, &mut sending));
        let outcome = catch_unwind(AssertUnwindSafe(work));
        if outcome.is_err() {
            http.counters.panics.add(1);
            tracing::error!(path = route.pattern, "a request ended in a panic");
        }
        // After a panic the head's sender is still here; dropped, it makes `run` answer 500.
        drop(sending);
        http.app.buffers.give_back(request.body);
        drop(share);
    });
    head.await.map_err(|_| lost())
}

fn lost() -> Failure {
    Failure::internal("the request failed inside the server; see its log")
}

/// The answer to a request that is little work, made right here: handing it to a worker thread and
/// back would take longer. `None` when the worker has to do it, or to say why it cannot be done.
fn attempt(brief: BriefDoor, http: &Http, route: &Route, request: &Request) -> Option<Answer> {
    match catch_unwind(AssertUnwindSafe(|| brief(&http.app, request))) {
        // What is streamed would wait for the socket.
        Ok(answer) => answer.filter(|answer| !matches!(answer.content, Content::Stream(_))),
        Err(_) => {
            http.counters.panics.add(1);
            tracing::error!(path = route.pattern, "a request ended in a panic");
            None
        }
    }
}

fn work(http: &Http, route: &'static Route, request: &Request, sending: &mut Option<Sending>) {
    let answer = match (route.door)(&http.app, request) {
        Ok(answer) => answer,
        Err(failure) => {
            let failure = selection::name_timeout(http.app.config.query.timeout, request, failure);
            if let Some(limit) = failure.limit {
                http.app.telemetry.limit_hit(limit);
            }
            if status_of(failure.kind).is_server_error() {
                let (path, error) = (route.pattern, failure.to_string());
                tracing::debug!(path, error, "request not served");
            }
            route.wording.answer(&with_form_advice(route, request, failure))
        }
    };
    let Some(sending) = sending.take() else { return };
    finish(http, sending.send(answer));
}

/// Advises forms where parameters are missing or wrong and a body was ignored that is none.
fn with_form_advice(route: &Route, request: &Request, failure: Failure) -> Failure {
    let is_about_parameters = failure.kind == Kind::BadInput && failure.remedy.is_none();
    if !is_about_parameters || route.wording != Wording::Prometheus || request.body.is_empty() {
        return failure;
    }
    let content_type = request.header(CONTENT_TYPE);
    failure.advised(format!(
        "the body was ignored, as its type is {content_type:?}: send parameters in the URL or as \
         application/x-www-form-urlencoded"
    ))
}

/// Counts how an answer went out.
fn finish(http: &Http, sent: Sent) {
    match sent {
        Sent::Complete | Sent::BrokenOff => {}
        Sent::ClientGone => http.counters.clients_gone.add(1),
        Sent::ClientStuck => http.app.telemetry.limit_hit(Limit::WriteTimeout),
    }
}

fn encoding(route: &Route, request: &Request) -> Encoding {
    let accepted = request.header(ACCEPT_ENCODING);
    let takes_gzip = accepted.split(',').any(|piece| {
        let mut parts = piece.split(';').map(str::trim);
        let is_gzip = parts.next() == Some("gzip");
        is_gzip && !parts.any(|part| part == "q=0")
    });
    if takes_gzip && route.class != Class::Insert { Encoding::Gzip } else { Encoding::Identity }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::router::{Access, Confinement};
    pub use app::config::{Config, Settings};
    use app::{ClosedParts, Opened};
    use federation::Legacy;
    use hyper::Method;
    use hyper::header::HeaderMap;
    use influx_schema::records::OpenedStore;
    use vfs::{RealVfs, Vfs};

    fn panicking(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
        panic!("as the test wants it")
    }

    static ROUTES: &[Route] = &[PANICKING];
    const PANICKING: Route = Route {
        pattern: "/panic",
        methods: &[Method::GET],
        class: Class::Control,
        access: Access::Read,
        confinement: Confinement::Harmless,
        wording: Wording::Prometheus,
        door: panicking,
        brief: None,
    };

    fn http(directory: &std::path::Path) -> Arc<Http> {
        let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new());
        let config = Config::new(Settings::from_pairs(&[]).expect("settings")).expect("config");
        let opened = OpenedStore::open(vfs.clone(), directory, config.store.clone());
        let OpenedStore { store, schema, .. } = opened.expect("a store");
        let address = config.http_address();
        let closed = ClosedParts::default();
        let opened = Opened { store, schema, kv: None, tables: None, closed };
        let legacy = Arc::new(Legacy::new(&config.legacy).expect("none"));
        let app = Arc::new(App::new(config, opened, legacy, vfs, address));
        Arc::new(Http::new(app, ROUTES))
    }

    #[test]
    fn a_panic_is_500_and_the_server_lives() {
        let directory = tempfile::tempdir().expect("a directory");
        let http = http(directory.path());
        let request = || Request {
            method: Method::GET,
            captured: String::new(),
            params: Params::default(),
            filters: Arc::default(),
            headers: HeaderMap::new(),
            body: Vec::new(),
            now: 0,
            started: Instant::now(),
            peer: None,
            cancelled: Arc::default(),
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        for _ in 0..2 {
            let held = Held { permit: None, share: None, framing: Framing::Delimited };
            let failure = runtime.block_on(run(&http, &ROUTES[0], request(), held));
            assert_eq!(failure.err().map(|f| f.kind), Some(Kind::Internal));
        }
        assert_eq!(http.counters.panics.get(), 2);
        http.app.store.close().expect("closed");
    }
}
