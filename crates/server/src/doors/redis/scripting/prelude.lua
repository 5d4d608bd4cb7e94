-- The globals of a script: Lua's own behind tables that cannot be changed. Functions of `native` are
-- in Rust; what they raise is a userdata until somebody catches it.
local native, lib, names = ...
local rawpcall, rawxpcall, resume = lib.pcall, lib.xpcall, lib.coroutine.resume
local type, error, tostring, rawset = lib.type, lib.error, lib.tostring, lib.rawset
local setmetatable, getmetatable, rawget = lib.setmetatable, lib.getmetatable, lib.rawget
local loadstring, setfenv, concat = lib.loadstring, lib.setfenv, lib.table.concat
local byte, rawunpack, collectgarbage, tonumber =
  lib.string.byte, lib.unpack, lib.collectgarbage, lib.tonumber
local unwrap, handler, look = native.unwrap, native.handler, native.look

local READONLY = "Attempt to modify a readonly table"
-- Tables that scripts hold in place of the real ones.
local protected = setmetatable({}, { __mode = "k" })

local function refuse()
  error(READONLY, 2)
end

local function protect(real)
  local proxy = setmetatable({}, { __index = real, __newindex = refuse })
  protected[proxy] = real
  return proxy
end

local function value_of(raised)
  if type(raised) == "userdata" then
    return unwrap(raised)
  end
  return raised
end

-- Those who catch an error get its text, as they did before errors were tables.
local function caught(ok, raised, ...)
  if ok then
    return ok, raised, ...
  end
  raised = value_of(raised)
  if type(raised) == "table" then
    local text = raised.err
    if type(text) == "string" or type(text) == "number" then
      raised = text
    end
  end
  return false, raised
end

local function resumed(ok, raised, ...)
  if ok then
    return ok, raised, ...
  end
  return false, value_of(raised)
end

local real = {}
for i = 1, #names do
  real[names[i]] = lib[names[i]]
end

function real.pcall(...)
  return caught(rawpcall(...))
end

-- A handler runs once the error is behind it. Lua's own runs within: there, what ends a script would
-- call it again, and nobody would look at the clock any more.
local function handled(handle, is_done, ...)
  if is_done then
    return true, ...
  end
  local is_handled, said = rawpcall(handle, value_of((...)))
  if not is_handled then
    said = "error in error handling"
  end
  return false, said
end

function real.xpcall(run, handle)
  return handled(handle, rawpcall(run))
end

-- No instruction of a script is done while it sorts, so the clock is looked at before.
local sort = lib.table.sort
function lib.table.sort(...)
  look()
  sort(...)
end

function real.setmetatable(target, meta)
  if type(target) ~= "table" then
    error("bad argument #1 to 'setmetatable' (table expected, got " .. type(target) .. ")", 2)
  elseif meta ~= nil and type(meta) ~= "table" then
    error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
  elseif protected[target] then
    error(READONLY, 2)
  end
  return setmetatable(target, meta)
end

function real.rawset(target, key, value)
  if type(target) ~= "table" then
    error("bad argument #1 to 'rawset' (table expected, got " .. type(target) .. ")", 2)
  elseif protected[target] then
    error(READONLY, 2)
  end
  return rawset(target, key, value)
end

function real.rawget(target, key)
  if type(target) ~= "table" then
    error("bad argument #1 to 'rawget' (table expected, got " .. type(target) .. ")", 2)
  end
  return rawget(protected[target] or target, key)
end

-- The number that an argument is.
local function number(value, at, of)
  local found = tonumber(value)
  if not found or type(value) ~= "number" and type(value) ~= "string" then
    error("bad argument #" .. at .. " to '" .. of .. "' (number expected, got " .. type(value) .. ")", 3)
  end
  return found
end

-- Lua's own counts in 32 bits, and believes a count that is none.
local UNPACKED_MAX = 7999
function real.unpack(list, first, last)
  if type(list) ~= "table" then
    error("bad argument #1 to 'unpack' (table expected, got " .. type(list) .. ")", 2)
  end
  first = first == nil and 1 or number(first, 2, "unpack")
  last = last == nil and #list or number(last, 3, "unpack")
  if not (last < first) and not (last - first < UNPACKED_MAX) then
    error("too many results to unpack", 2)
  end
  -- Where numbers of 32 bits end, nothing is in a table of ours.
  if last < first or not (-2147483648 <= first and last < 2147483647) then
    return
  end
  return rawunpack(list, first, last)
end

-- How often memory is freed is not for scripts to say: the next one would have none.
function real.collectgarbage(what, ...)
  if what == nil or what == "collect" or what == "count" or what == "step" then
    return collectgarbage(what, ...)
  end
  return 0
end

-- Text only: compiled code could break the interpreter.
function real.loadstring(text, name)
  if type(text) == "number" then
    text = tostring(text)
  elseif type(text) ~= "string" then
    error("bad argument #1 to 'loadstring' (string expected, got " .. type(text) .. ")", 2)
  end
  if byte(text) == 27 then
    return nil, "bad code: it is compiled"
  end
  local loaded, reason = loadstring(text, name or text)
  return loaded, reason
end

function real.load(next_piece, name)
  local pieces = {}
  while true do
    local piece = next_piece()
    if piece == nil or piece == "" then
      break
    end
    if type(piece) ~= "string" then
      return nil, "reader function must return a string"
    end
    pieces[#pieces + 1] = piece
  end
  return real.loadstring(concat(pieces), name or "=(load)")
end

local coroutine = {}
for name, value in lib.pairs(lib.coroutine) do
  coroutine[name] = value
end
function coroutine.resume(...)
  return resumed(resume(...))
end

lib.math.random, lib.math.randomseed = native.random, native.randomseed
real.coroutine = protect(coroutine)
for _, name in lib.ipairs({ "string", "math", "table" }) do
  real[name] = protect(lib[name])
end
for name, library in lib.pairs(native.libraries) do
  real[name] = protect(library)
end

local function missing(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end
setmetatable(real, { __index = missing })
local globals = protect(real)
real._G = globals

local meta_of_globals = protect({ __index = missing })
local meta_of_strings = protect({ __index = real.string })
function real.getmetatable(target)
  if type(target) == "string" then
    return meta_of_strings
  elseif protected[target] then
    if target == globals then
      return meta_of_globals
    end
    return nil
  end
  return getmetatable(target)
end

local function run(script)
  return rawxpcall(script, handler)
end

local function run_with(script, keys, arguments)
  return rawxpcall(function()
    return script(keys, arguments)
  end, handler)
end

return { globals = globals, real = real, run = run, run_with = run_with,
  protect = protect, missing = missing }
