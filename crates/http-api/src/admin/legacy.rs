//! Up to when legacy backends are asked: told, and moved on order.

use crate::http::answer::Answer;
use crate::http::request::Request;
use crate::http::request::selection::{has_switch, invalid};
use app::App;
use federation::rule;
use federation::until;
use federation::until::{Direction, Home, Wish, text_of};
use net::failure::Failure;
use serde_json::{Value, json};
use std::sync::Arc;

/// `/api/v1/status/legacy`: each backend, up to when it is asked, what the flag says, and whether it
/// answers.
pub fn status(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let backends: Vec<Value> = app.legacy.backends().iter().map(|one| state_of(one)).collect();
    let problem = app.legacy.problem_words();
    Ok(Answer::success(json!({ "backends": backends, "problem": problem })))
}

fn state_of(backend: &federation::Backend) -> Value {
    let (now, flag) = (backend.until_now(), backend.rule().until);
    json!({
        "url": backend.url(),
        "kind": backend.rule().kind.word(),
        "until": text_of(now),
        "flagUntil": text_of(flag),
        "movedUntil": (now != flag).then(|| text_of(now)),
        "isAway": backend.is_away(),
    })
}

/// `POST /api/v1/admin/legacy/until?url=...&kind=...&until=...`, to an earlier time; with `from=...`
/// only from there, with `forward=1` to a later one that the flag still allows. With `login=...`, the digest
/// of who copied what it moves over, only where that is who this server asks as.
pub fn move_until(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let said = |name: &str| {
        let text = request.params.filled(name);
        text.ok_or_else(|| Failure::bad_input(format!("no {name} parameter provided")))
    };
    let time = |name: &str, text: &str| until::parse(text).map_err(|why| invalid(name, &why));
    let kind = rule::parse_kind(said("kind")?).map_err(|why| invalid("kind", &why))?;
    let from = request.params.filled("from").map(|text| time("from", text)).transpose()?;
    let direction = match has_switch(request, "forward")? {
        true => Direction::Both,
        false => Direction::Back,
    };
    let to = time("until", said("until")?)?;
    let login = request.params.get("login");
    let wish = Wish { url: said("url")?, kind, until: to, from, direction, login };
    let home = Home { vfs: app.vfs.as_ref(), dir: &app.config.data_dir };
    let backend = app.legacy.move_until(&app.store, home, &wish)?;
    Ok(Answer::success(state_of(&backend)))
}
