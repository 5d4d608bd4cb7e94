-- The globals of a script: Lua's own behind tables that cannot be changed. Functions of `native` are
-- in Rust; what they raise is a userdata until somebody catches it.
local native, lib, names = ...
local rawpcall, rawxpcall, resume = lib.pcall, lib.xpcall, lib.coroutine.resume
local type, error, tostring, rawset = lib.type, lib.error, lib.tostring, lib.rawset
local setmetatable, getmetatable, rawget = lib.setmetatable, lib.getmetatable, lib.rawget
local loadstring, setfenv, concat = lib.loadstring, lib.setfenv, lib.table.concat
local select, floor = lib.select, lib.math.floor
local byte, rawunpack, collectgarbage, tonumber =
  lib.string.byte, lib.unpack, lib.collectgarbage, lib.tonumber
local unwrap, handler, fail = native.unwrap, native.handler, native.fail
local set_memory_limit, lift_memory_limit = native.set_memory_limit, native.lift_memory_limit
local refuse_argument, gmatch_step = native.refuse_argument, native.gmatch_step

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

for name, replacement in lib.pairs(native.strings) do
  lib.string[name] = replacement
end

function lib.string.gmatch(subject, pattern)
  if type(subject) ~= "string" or type(pattern) ~= "string" then
    gmatch_step(subject, pattern, 0)
  end
  local at = 0
  local function advance(next_at, ...)
    at = next_at
    return ...
  end
  return function()
    return advance(gmatch_step(subject, pattern, at))
  end
end
lib.string.gfind = lib.string.gmatch

-- The quicksort of `ltablib.c` in Lua: its instructions count, so a script that sorts can be killed.
local function quicksort(list, low, high, less)
  while low < high do
    local first, last = list[low], list[high]
    if less(last, first) then
      list[low], list[high] = last, first
    end
    if high - low == 1 then
      return
    end
    local middle = floor((low + high) / 2)
    local pivot = list[middle]
    first = list[low]
    if less(pivot, first) then
      list[middle], list[low] = first, pivot
    else
      last = list[high]
      if less(last, pivot) then
        list[middle], list[high] = last, pivot
      end
    end
    if high - low == 2 then
      return
    end
    pivot = list[middle]
    list[middle], list[high - 1] = list[high - 1], pivot
    local up, down = low, high - 1
    while true do
      up = up + 1
      while less(list[up], pivot) do
        if up > high then
          fail("invalid order function for sorting")
        end
        up = up + 1
      end
      down = down - 1
      while less(pivot, list[down]) do
        if down < low then
          fail("invalid order function for sorting")
        end
        down = down - 1
      end
      if down < up then
        break
      end
      list[up], list[down] = list[down], list[up]
    end
    list[high - 1], list[up] = list[up], list[high - 1]
    -- The smaller half by recursion, the larger one by the loop.
    if up - low < high - up then
      quicksort(list, low, up - 1, less)
      low = up + 1
    else
      quicksort(list, up + 1, high, less)
      high = up - 1
    end
  end
end

local function less(one, two)
  return one < two
end

-- C compares without a place in the script, so its errors have none.
local find, sub = lib.string.find, lib.string.sub
local function sorted(ok, raised)
  if not ok then
    if type(raised) == "string" then
      local _, last = find(raised, "^prelude:%d+: ")
      raised = sub(raised, (last or 0) + 1)
    end
    error(raised, 0)
  end
end

local function sort_raw(list, size, compare)
  if compare then
    -- No tail call: errors name the place of the caller.
    quicksort(list, 1, size, compare)
  else
    sorted(rawpcall(quicksort, list, 1, size, less))
  end
end

function lib.table.sort(list, compare)
  if type(list) ~= "table" then
    refuse_argument(1, "sort", "table expected, got " .. type(list))
  elseif compare ~= nil and type(compare) ~= "function" then
    refuse_argument(2, "sort", "function expected, got " .. type(compare))
  end
  local size = #list
  if not getmetatable(list) then
    sort_raw(list, size, compare)
    return
  end
  -- Metamethods have no part in it.
  local raw = {}
  for at = 1, size do
    raw[at] = rawget(list, at)
  end
  sort_raw(raw, size, compare)
  for at = 1, size do
    rawset(list, at, raw[at])
  end
end

-- C moves all elements between the end and the position, which a script could put 2^31 below.
local POSITION_MIN = -1000
local insert = lib.table.insert
function lib.table.insert(list, ...)
  if type(list) ~= "table" then
    refuse_argument(1, "insert", "table expected, got " .. type(list))
  elseif protected[list] then
    error(READONLY, 2)
  end
  local count = select("#", ...)
  if count == 1 then
    return insert(list, (...))
  elseif count ~= 2 then
    fail("wrong number of arguments to 'insert'")
  end
  local at, value = ...
  local place = (type(at) == "number" or type(at) == "string") and tonumber(at)
  if not place then
    refuse_argument(2, "insert", "number expected, got " .. type(at))
  elseif not (POSITION_MIN <= place and place < 2147483648) then
    refuse_argument(2, "insert", "position out of bounds")
  end
  insert(list, place, value)
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
-- Its stack has fewer places left than that when it is called from here.
local UNPACKED_BY_C = 7900
local function list_head(list, at, last)
  return rawget(list, at), rawget(list, at + 1), rawget(list, at + 2), rawget(list, at + 3),
    rawget(list, at + 4), rawget(list, at + 5), rawget(list, at + 6), rawget(list, at + 7),
    rawget(list, at + 8), rawget(list, at + 9), rawget(list, at + 10), rawget(list, at + 11),
    rawget(list, at + 12), rawget(list, at + 13), rawget(list, at + 14), rawget(list, at + 15),
    rawunpack(list, at + 16, last)
end
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
  if last - first < UNPACKED_BY_C then
    return rawunpack(list, first, last)
  end
  return list_head(list, first, last)
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

-- The limit holds from here to the end of the script: outside, a failed allocation of Lua would end the
-- process.
local function unlimited(...)
  lift_memory_limit()
  return ...
end

local function run(script)
  set_memory_limit()
  return unlimited(rawxpcall(script, handler))
end

local function run_with(script, keys, arguments)
  set_memory_limit()
  return unlimited(rawxpcall(function()
    return script(keys, arguments)
  end, handler))
end

return { globals = globals, real = real, run = run, run_with = run_with,
  protect = protect, missing = missing }
