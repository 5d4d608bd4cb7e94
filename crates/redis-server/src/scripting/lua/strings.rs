//! Functions of `string` that replace those of Lua's C library: matching with bounds, and `rep`.
//!
//! The C versions run for as long as a script's arguments make them, and never look at the clock.

use super::arguments::{Text, c_integer, integer_or, text, type_name};
use super::limits::{check_time, memory_left};
use super::pattern::{Captured, Matcher, PatternError, has_specials, split_anchor, until_nul};
use super::raised::Raised;
use crate::scripting::busy::Busy;
use memchr::memmem;
use mlua::{Error, Function, Lua, MultiValue, Table, Value};
use std::ops::Range;
use std::sync::Arc;

/// Creates the functions.
///
/// # Errors
/// When there is no memory.
pub fn library(lua: &Lua, busy: &Arc<Busy>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, is_find) in [("find", true), ("match", false)] {
        let busy = busy.clone();
        let run = move |lua: &Lua, args: MultiValue| search(lua, &busy, &args, is_find);
        table.raw_set(name, lua.create_function(run)?)?;
    }
    let replacer = Replacer::new(lua, busy)?;
    let gsub = lua.create_function(move |lua, args: MultiValue| replacer.gsub(lua, &args))?;
    table.raw_set("gsub", gsub)?;
    let busy = busy.clone();
    let rep = lua.create_function(move |lua, args: MultiValue| repeat(lua, &busy, &args))?;
    table.raw_set("rep", rep)?;
    Ok(table)
}

/// Creates the step of `gmatch`: from subject, pattern and place to the next place and the captures.
///
/// # Errors
/// When there is no memory.
pub fn gmatch_step(lua: &Lua, busy: &Arc<Busy>) -> mlua::Result<Function> {
    let busy = busy.clone();
    lua.create_function(move |lua, args: MultiValue| {
        let (subject, pattern) = (text(lua, &args, 0, "gmatch")?, text(lua, &args, 1, "gmatch")?);
        let start = usize::try_from(integer_or(lua, &args, 2, "gmatch", 0)?).unwrap_or(0);
        let mut check = || check_time(lua, &busy);
        // An anchor has no meaning here.
        let mut matcher = Matcher::new(&subject, until_nul(&pattern), &mut check);
        let found = matcher.find(start, false).map_err(|error| raise(lua, error))?;
        let Some(found) = found else { return Ok(MultiValue::new()) };
        let next = found.end + usize::from(found.is_empty());
        let mut values = vec![Value::Number(next as f64)];
        push_captures(lua, &matcher, &subject, Some(found), &mut values)?;
        Ok(values.into_iter().collect())
    })
}

fn raise(lua: &Lua, error: PatternError) -> Error {
    match error {
        PatternError::Pattern(words) => Raised::placed(lua, words),
        PatternError::Interrupted(error) => *error,
    }
}

fn no_memory() -> Error {
    Error::MemoryError("not enough memory".to_owned())
}

/// Offset of a position that counts from 1, or from the end if negative.
fn start_offset(position: i64, len: usize) -> usize {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let position = if position < 0 { position.saturating_add(len + 1) } else { position };
    usize::try_from((position - 1).clamp(0, len)).unwrap_or(0)
}

fn search(
    lua: &Lua,
    busy: &Arc<Busy>,
    args: &MultiValue,
    is_find: bool,
) -> mlua::Result<MultiValue> {
    let name = if is_find { "find" } else { "match" };
    let (subject, pattern) = (text(lua, args, 0, name)?, text(lua, args, 1, name)?);
    let start = start_offset(integer_or(lua, args, 2, name, 1)?, subject.len());
    let is_plain = || !matches!(args.get(3), None | Some(Value::Nil | Value::Boolean(false)));
    let items = until_nul(&pattern);
    let mut values = Vec::new();
    if is_find && (is_plain() || !has_specials(items)) {
        let rest = subject.get(start..).unwrap_or_default();
        match memmem::find(rest, &pattern) {
            Some(at) => push_range(start + at..start + at + pattern.len(), &mut values),
            None => values.push(Value::Nil),
        }
        return Ok(values.into_iter().collect());
    }
    let (is_anchored, items) = split_anchor(items);
    let mut check = || check_time(lua, busy);
    let mut matcher = Matcher::new(&subject, items, &mut check);
    match matcher.find(start, is_anchored).map_err(|error| raise(lua, error))? {
        None => values.push(Value::Nil),
        Some(found) if is_find => {
            push_range(found, &mut values);
            push_captures(lua, &matcher, &subject, None, &mut values)?;
        }
        Some(found) => push_captures(lua, &matcher, &subject, Some(found), &mut values)?,
    }
    Ok(values.into_iter().collect())
}

/// Adds the positions of a range, counted from 1, the last one included.
fn push_range(range: Range<usize>, values: &mut Vec<Value>) {
    values.push(Value::Number((range.start + 1) as f64));
    values.push(Value::Number(range.end as f64));
}

/// Adds all captures; without any, the whole match if one is given.
fn push_captures(
    lua: &Lua,
    matcher: &Matcher<'_>,
    subject: &[u8],
    whole: Option<Range<usize>>,
    values: &mut Vec<Value>,
) -> mlua::Result<()> {
    let count = matcher.capture_count().max(usize::from(whole.is_some()));
    let whole = whole.unwrap_or_default();
    for at in 0..count {
        values.push(capture_value(lua, matcher, subject, at, whole.clone())?);
    }
    Ok(())
}

fn capture_value(
    lua: &Lua,
    matcher: &Matcher<'_>,
    subject: &[u8],
    at: usize,
    whole: Range<usize>,
) -> mlua::Result<Value> {
    match matcher.capture(at, whole).map_err(|error| raise(lua, error))? {
        Captured::Position(position) => Ok(Value::Number(position as f64)),
        Captured::Text(range) => {
            let text = subject.get(range).unwrap_or_default();
            lua.create_string(text).map(Value::String)
        }
    }
}

/// Text that grows up to a limit.
struct Output {
    bytes: Vec<u8>,
    size_max: usize,
}

impl Output {
    fn add(&mut self, part: &[u8]) -> mlua::Result<()> {
        if self.size_max.saturating_sub(self.bytes.len()) < part.len() {
            return Err(no_memory());
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }
}

/// Third argument of `gsub`.
enum Replacement {
    /// Text with `%1`.
    Template(Text),
    /// Text without `%`.
    Plain(Text),
    Function(Function),
    Table(Table),
}

/// Runs `gsub`.
struct Replacer {
    busy: Arc<Busy>,
    /// Lua's `pcall`: keeps errors of callbacks as the values that they are.
    protected_call: Function,
    /// Looks up a key with the table's metamethods.
    index: Function,
}

impl Replacer {
    fn new(lua: &Lua, busy: &Arc<Busy>) -> mlua::Result<Replacer> {
        let index = lua.load("local list, key = ... return list[key]").set_name("=prelude");
        Ok(Replacer {
            busy: busy.clone(),
            protected_call: lua.globals().raw_get("pcall")?,
            index: index.into_function()?,
        })
    }

    fn gsub(&self, lua: &Lua, args: &MultiValue) -> mlua::Result<MultiValue> {
        let (subject, pattern) = (text(lua, args, 0, "gsub")?, text(lua, args, 1, "gsub")?);
        let len = i64::try_from(subject.len()).unwrap_or(i64::MAX);
        // C takes the lowest 32 bits.
        let count_max = integer_or(lua, args, 3, "gsub", len + 1)? as i32;
        let replacement = replacement(lua, args)?;
        let (is_anchored, items) = split_anchor(until_nul(&pattern));
        let mut check = || check_time(lua, &self.busy);
        let mut matcher = Matcher::new(&subject, items, &mut check);
        let mut out = Output { bytes: Vec::new(), size_max: memory_left(lua) };
        let (mut at, mut count) = (0, 0);
        while count < count_max {
            let end = matcher.match_at(at).map_err(|error| raise(lua, error))?;
            if let Some(end) = end {
                count += 1;
                self.replace(lua, &mut matcher, &subject, at..end, &replacement, &mut out)?;
            }
            match (end, subject.get(at)) {
                (Some(end), _) if at < end => at = end,
                (_, Some(byte)) => {
                    out.add(std::slice::from_ref(byte))?;
                    at += 1;
                }
                (_, None) => break,
            }
            if is_anchored {
                break;
            }
        }
        out.add(subject.get(at..).unwrap_or_default())?;
        let text = lua.create_string(&out.bytes)?;
        Ok([Value::String(text), Value::Number(f64::from(count))].into_iter().collect())
    }

    fn replace(
        &self,
        lua: &Lua,
        matcher: &mut Matcher<'_>,
        subject: &[u8],
        whole: Range<usize>,
        replacement: &Replacement,
        out: &mut Output,
    ) -> mlua::Result<()> {
        let value = match replacement {
            Replacement::Plain(text) => return out.add(text),
            Replacement::Template(template) => {
                matcher.count(template.len()).map_err(|error| raise(lua, error))?;
                return expand(lua, matcher, subject, whole, template, out);
            }
            Replacement::Function(function) => {
                let mut values = vec![Value::Function(function.clone())];
                push_captures(lua, matcher, subject, Some(whole.clone()), &mut values)?;
                self.call(values)?
            }
            Replacement::Table(table) => {
                let key = capture_value(lua, matcher, subject, 0, whole.clone())?;
                match table.metatable() {
                    None => table.raw_get(key)?,
                    Some(_) => {
                        let index = Value::Function(self.index.clone());
                        self.call(vec![index, Value::Table(table.clone()), key])?
                    }
                }
            }
        };
        match &value {
            Value::Nil | Value::Boolean(false) => out.add(subject.get(whole).unwrap_or_default()),
            Value::String(text) => out.add(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => {
                let text = lua.coerce_string(value)?;
                out.add(text.as_ref().map(|text| text.as_bytes()).as_deref().unwrap_or_default())
            }
            other => {
                let kind = type_name(Some(other));
                Err(Raised::placed(lua, &format!("invalid replacement value (a {kind})")))
            }
        }
    }

    /// Calls the function that the values begin with. Returns its first answer.
    fn call(&self, values: Vec<Value>) -> mlua::Result<Value> {
        let values: MultiValue = values.into_iter().collect();
        let mut answers = self.protected_call.call::<MultiValue>(values)?;
        let is_ok = matches!(answers.pop_front(), Some(Value::Boolean(true)));
        let value = answers.pop_front().unwrap_or(Value::Nil);
        if is_ok { Ok(value) } else { Err(Raised::value(value)) }
    }
}

fn replacement(lua: &Lua, args: &MultiValue) -> mlua::Result<Replacement> {
    match args.get(2) {
        Some(Value::String(_) | Value::Integer(_) | Value::Number(_)) => {
            let text = text(lua, args, 2, "gsub")?;
            match text.contains(&b'%') {
                true => Ok(Replacement::Template(text)),
                false => Ok(Replacement::Plain(text)),
            }
        }
        Some(Value::Function(function)) => Ok(Replacement::Function(function.clone())),
        Some(Value::Table(table)) => Ok(Replacement::Table(table.clone())),
        _ => Err(Raised::argument(lua, 3, "gsub", "string/function/table expected")),
    }
}

/// Adds a template with its captures.
fn expand(
    lua: &Lua,
    matcher: &Matcher<'_>,
    subject: &[u8],
    whole: Range<usize>,
    template: &[u8],
    out: &mut Output,
) -> mlua::Result<()> {
    let mut bytes = template.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.add(&[byte])?;
            continue;
        }
        // At the end C reads the NUL behind the text.
        match bytes.next().unwrap_or(0) {
            b'0' => out.add(subject.get(whole.clone()).unwrap_or_default())?,
            digit @ b'1'..=b'9' => {
                let at = usize::from(digit - b'1');
                match matcher.capture(at, whole.clone()).map_err(|error| raise(lua, error))? {
                    Captured::Text(range) => out.add(subject.get(range).unwrap_or_default())?,
                    Captured::Position(position) => out.add(position.to_string().as_bytes())?,
                }
            }
            other => out.add(&[other])?,
        }
    }
    Ok(())
}

/// Checks the time first: a few instructions copy many large strings.
fn repeat(lua: &Lua, busy: &Arc<Busy>, args: &MultiValue) -> mlua::Result<Value> {
    check_time(lua, busy)?;
    let text = text(lua, args, 0, "rep")?;
    let count = c_integer(super::arguments::number(lua, args, 1, "rep")?) as i32;
    let count = if text.is_empty() { 0 } else { usize::try_from(count).unwrap_or(0) };
    let size = text.len().checked_mul(count).filter(|size| *size <= memory_left(lua));
    size.ok_or_else(no_memory)?;
    lua.create_string(text.repeat(count)).map(Value::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripting::lua::raised::unwrap;
    use rng::Random;

    /// Compares each function with its C version. Returns the first difference.
    const COMPARE: &str = r##"
        local c, ours, step, unwrap = ...
        local function gmatch(subject, pattern)
            local at = 0
            local function advance(next_at, ...)
                at = next_at
                return ...
            end
            return function() return advance(step(subject, pattern, at)) end
        end
        local function show(ok, ...)
            local parts = { tostring(ok) }
            for at = 1, select("#", ...) do
                local value = unwrap((select(at, ...)))
                if not ok and type(value) == "string" then
                    -- The iterator of gmatch is called from another line.
                    value = c.gsub(value, "^compare:%d+: ", "")
                end
                parts[#parts + 1] = type(value) .. ":" .. tostring(value)
            end
            return table.concat(parts, "|")
        end
        local function all(iterate, subject, pattern)
            local found = {}
            for one, two in iterate(subject, pattern) do
                found[#found + 1] = tostring(one) .. "," .. tostring(two)
            end
            return table.concat(found, ";")
        end
        local replacements = {
            function(...) return select("#", ...) .. tostring((...)) end,
            function(one) return one == "a" and "<" .. one .. ">" end,
            { a = "x", b = 7, ab = false, [1] = "one" },
            setmetatable({}, { __index = function(_, key) return key .. "!" end }),
            function() error("raised", 0) end,
            function() return {} end,
            9, true,
        }
        return function(subject, pattern, template, start, count)
            local function differ(name, expected, actual)
                if expected ~= actual then return name .. ": " .. expected .. " and " .. actual end
            end
            for _, name in ipairs({ "find", "match" }) do
                local difference = differ(name, show(pcall(c[name], subject, pattern, start)),
                    show(pcall(ours[name], subject, pattern, start)))
                if difference then return difference end
            end
            local difference = differ("plain", show(pcall(c.find, subject, pattern, start, true)),
                    show(pcall(ours.find, subject, pattern, start, true)))
                or differ("gmatch", show(pcall(all, c.gmatch, subject, pattern)),
                    show(pcall(all, gmatch, subject, pattern)))
                or differ("gsub", show(pcall(c.gsub, subject, pattern, template, count)),
                    show(pcall(ours.gsub, subject, pattern, template, count)))
            if difference then return difference end
            for at, replacement in ipairs(replacements) do
                difference = differ("gsub " .. at,
                    show(pcall(c.gsub, subject, pattern, replacement)),
                    show(pcall(ours.gsub, subject, pattern, replacement)))
                if difference then return difference end
            end
        end
    "##;

    fn functions(lua: &Lua, busy: &Arc<Busy>) -> (Table, Table) {
        let c: Table = lua.globals().raw_get("string").unwrap();
        (c, library(lua, busy).unwrap())
    }

    fn drawn(random: &mut Random, pieces: &[&[u8]], count_max: usize) -> Vec<u8> {
        (0..random.index(count_max + 1)).flat_map(|_| random.pick(pieces).to_vec()).collect()
    }

    #[test]
    fn patterns_match_as_in_the_c_library() {
        const LETTERS: &[&[u8]] =
            &[b"a", b"b", b"(", b")", b"1", b" ", b"A", b"_", b"\0", b"\xff", b"ab", b"]", b"-"];
        const ITEMS: &[&[u8]] = &[
            b"a", b"b", b".", b"%a", b"%A", b"%d", b"%s", b"%w", b"%W", b"%p", b"%z", b"%x", b"%c",
            b"[ab]", b"[^a]", b"[a-c]", b"[%a_]", b"[]]", b"[^]a]", b"[a-]", b"[%]-]", b"(", b"(",
            b")", b")", b"()", b"%1", b"%2", b"%0", b"%b()", b"%bab", b"%f[a]", b"%f[^%w]", b"^",
            b"$", b"%%", b"%", b"[", b"[^", b"%f", b"%b", b"\0", b"\xff", b"-", b"?", b"]",
        ];
        const TEMPLATES: &[&[u8]] = &[b"x", b"%0", b"%1", b"%2", b"%%", b"%", b"%a", b"\0", b"yy"];
        let mut random = Random::seeded(20_261_128);
        let busy = Arc::new(Busy::default());
        let lua = Lua::new();
        let (c, ours) = functions(&lua, &busy);
        let step = gmatch_step(&lua, &busy).unwrap();
        let unwrapped = lua.create_function(unwrap).unwrap();
        let compare: Function =
            lua.load(COMPARE).set_name("=compare").call((c, ours, step, unwrapped)).unwrap();
        for _ in 0..60_000 {
            let subject = drawn(&mut random, LETTERS, 10);
            let mut pattern = Vec::new();
            for _ in 0..random.index(7) {
                let item = *random.pick(ITEMS);
                pattern.extend_from_slice(item);
                if random.below(3) == 0 {
                    pattern.push(*random.pick(b"*+-?"));
                }
            }
            let template = drawn(&mut random, TEMPLATES, 3);
            let start = random.below(26) as i64 - 13;
            let count = (random.below(4) != 0).then(|| random.below(4) as i64 - 1);
            let args = [&subject, &pattern, &template].map(|text| lua.create_string(text).unwrap());
            let [s, p, t] = args;
            let difference: Option<String> = compare.call((s, p, t, start, count)).unwrap();
            let shown = |text: &[u8]| text.escape_ascii().to_string();
            let case = (shown(&subject), shown(&pattern), shown(&template), start, count);
            assert_eq!(difference, None, "{case:?}");
        }
    }

    #[test]
    fn arguments_are_refused_as_in_the_c_library() {
        let busy = Arc::new(Busy::default());
        let lua = Lua::new();
        let (c, ours) = functions(&lua, &busy);
        lua.globals().raw_set("c", c).unwrap();
        lua.globals().raw_set("ours", ours).unwrap();
        for call in [
            "X.find()",
            "X.find('a', nil)",
            "X.find('a', 'a', {})",
            "X.find(121, 2, '2')",
            "X.find('a', 'a', nil, 1)",
            "X.match('a')",
            "X.match({}, 'a')",
            "('x').rep(X, 1)",
            "X.gsub('a', 'a')",
            "X.gsub('a', 'a', true)",
            "X.gsub('a', 'a', 'b', 'c')",
            "X.gsub('aaa', 'a', 'b', 1.9)",
            "X.gsub('aaa', 'a', 'b', 4294967297)",
            "X.gsub('aaa', 'a', 0.5)",
            "X.rep()",
            "X.rep('ab', '3')",
            "X.rep('ab', -1)",
            "X.rep('', 1)",
            "X.rep('a', nil)",
            "X.rep('ab', 2.7)",
            "('a'):rep({})",
            "(function(f) return f('a', '(') end)(X.find)",
            "X.find('a', '%')",
            "pcall(X.find)",
        ] {
            let outcome = |name: &str| {
                let chunk = lua.load(format!("return {}", call.replace('X', name)));
                match chunk.set_name("@user_script").call::<MultiValue>(()) {
                    Ok(values) => format!("{values:?}"),
                    Err(error) => {
                        let text = crate::scripting::lua::raised::text_of(&error);
                        let text = String::from_utf8_lossy(&text).into_owned();
                        text.lines().next().unwrap_or_default().to_owned()
                    }
                }
            };
            // Errors that `pcall` catches are userdata until the prelude unwraps them.
            if !call.starts_with("pcall") {
                assert_eq!(outcome("ours"), outcome("c"), "{call}");
            }
        }
    }

    #[test]
    fn matches_have_a_depth_and_end_when_the_script_is_killed() {
        let busy = Arc::new(Busy::default());
        let lua = Lua::new();
        let (_, ours) = functions(&lua, &busy);
        lua.globals().raw_set("ours", ours).unwrap();
        lua.globals().raw_set("step", gmatch_step(&lua, &busy).unwrap()).unwrap();
        let error = |script: &str| {
            let error = lua.load(script).call::<MultiValue>(()).unwrap_err();
            String::from_utf8_lossy(&crate::scripting::lua::raised::text_of(&error)).into_owned()
        };
        let deep = error("return ours.find(('a'):rep(1000000), ('a?'):rep(1000000))");
        assert!(deep.contains("pattern too complex"), "{deep}");
        let large = error("return ours.gsub(('a'):rep(100000), 'a', ('b'):rep(100000))");
        assert!(large.contains("not enough memory"), "{large}");
        let large = error("return ours.rep('ab', 2000000000)");
        assert!(large.contains("not enough memory"), "{large}");
        busy.end_at_once();
        for script in [
            "return ours.find(('a'):rep(60), ('a*'):rep(60) .. 'b')",
            "return ours.match(('a'):rep(100000), '.-.-b')",
            "return step(('a'):rep(100000), '.-.-b')",
            "return ours.gsub(('('):rep(1000000), '%b()', '')",
            "return ours.gsub(('a'):rep(1000000), '', ('%1'):rep(1000))",
            "return ours.find(('a'):rep(100000), '[' .. ('b'):rep(1000) .. ']*c')",
        ] {
            let killed = error(script);
            assert!(killed.contains("Script killed"), "{script}: {killed}");
        }
    }
}
