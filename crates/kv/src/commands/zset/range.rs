//! Parts of a sorted set: shown, counted, removed, stored.

use super::bounds::{By, RangeForm, RangeQuery};
use super::{answer_scored, combine, removed, scored_array};
use crate::call::Call;
use crate::error::CommandError;
use crate::value::Zset;

pub(super) fn zrange(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, RangeForm::default())
}

pub(super) fn zrevrange(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, form(By::Rank, true))
}

pub(super) fn zrangebyscore(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, form(By::Score, false))
}

pub(super) fn zrevrangebyscore(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, form(By::Score, true))
}

pub(super) fn zrangebylex(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, form(By::Lex, false))
}

pub(super) fn zrevrangebylex(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, form(By::Lex, true))
}

fn form(by: By, is_reverse: bool) -> RangeForm {
    RangeForm { by: Some(by), is_reverse: Some(is_reverse), is_stored: false }
}

fn show(call: &mut Call<'_>, form: RangeForm) -> Result<(), CommandError> {
    let query = RangeQuery::parse(form, call.args, 2)?;
    let Some(zset) = call.keys.get::<Zset>(call.db, call.args[1])? else {
        call.out.array(0);
        return Ok(());
    };
    let ranks = query.ranks(zset);
    let out = &mut *call.out;
    if query.with_scores {
        scored_array(out, ranks.len());
        zset.each(ranks, query.is_reverse, |member, score| answer_scored(out, member, score));
    } else {
        out.array(ranks.len());
        zset.each(ranks, query.is_reverse, |member, _| out.bulk(member));
    }
    Ok(())
}

pub(super) fn zrangestore(call: &mut Call<'_>) -> Result<(), CommandError> {
    let form = RangeForm { is_stored: true, ..RangeForm::default() };
    let query = RangeQuery::parse(form, call.args, 3)?;
    let mut found: Vec<(Vec<u8>, f64)> = Vec::new();
    if let Some(zset) = call.get::<Zset>(call.args[2])? {
        let ranks = query.ranks(zset);
        zset.each(ranks, query.is_reverse, |member, score| found.push((member.to_vec(), score)));
    }
    let stored = Zset::from_scores(found.iter().map(|(member, score)| (&**member, *score)));
    combine::store(call, call.args[1], stored, "zrangestore")
}

pub(super) fn zcount(call: &mut Call<'_>) -> Result<(), CommandError> {
    count(call, By::Score)
}

pub(super) fn zlexcount(call: &mut Call<'_>) -> Result<(), CommandError> {
    count(call, By::Lex)
}

fn count(call: &mut Call<'_>, by: By) -> Result<(), CommandError> {
    let bounds = by.bounds(call.args[2], call.args[3])?;
    let zset = call.get::<Zset>(call.args[1])?;
    let count = zset.map_or(0, |zset| bounds.ranks(zset).len());
    call.out.len(count);
    Ok(())
}

pub(super) fn zremrangebyrank(call: &mut Call<'_>) -> Result<(), CommandError> {
    remove(call, By::Rank, "zremrangebyrank")
}

pub(super) fn zremrangebyscore(call: &mut Call<'_>) -> Result<(), CommandError> {
    remove(call, By::Score, "zremrangebyscore")
}

pub(super) fn zremrangebylex(call: &mut Call<'_>) -> Result<(), CommandError> {
    remove(call, By::Lex, "zremrangebylex")
}

fn remove(call: &mut Call<'_>, by: By, event: &'static str) -> Result<(), CommandError> {
    let key = call.args[1];
    let bounds = by.bounds(call.args[2], call.args[3])?;
    let mut count = 0;
    if let Some(zset) = call.get_mut::<Zset>(key)? {
        let ranks = bounds.ranks(zset);
        count = zset.remove_ranks(ranks).len();
    }
    if 0 < count {
        removed(call, event, key)?;
    }
    call.out.len(count);
    Ok(())
}
