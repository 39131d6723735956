import { RULE_FIELDS } from '../render/rules.ts'
import { WAKE_PROGRAM } from '../wake-program.ts'

/**
 * What the edge's configuration language cannot say: the redirects and the headers of routes, in Lua. Only
 * requests of routes that have such rules come here. Every thread has a copy of its own, so that no thread
 * waits for another.
 *
 * A list is read from its map once and kept by its name, which says its content. A pattern that somebody
 * typed runs with a limit: one that would take for ever does not match. It stands in a group behind the
 * limit, so that it cannot lift it.
 */
export const PROGRAM_FILE = 'program/edge.lua'
const PROGRAM = String.raw`
local rules_map = Map.new("/edge/maps/rules.map", Map._str)
local parts_map = Map.new("/edge/maps/parts.map", Map._str)
local MAX_KEPT = 20000
local kept, count = {}, 0

local function split(text)
  local fields = {}
  for field in (text .. "|"):gmatch("(.-)|") do fields[#fields + 1] = field end
  return fields
end

local function decode(word)
  return (word:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function read_list(backend, name)
  local key = backend .. "/" .. name
  local list = kept[key]
  if list then return list end
  list = {}
  for index = 1, tonumber(name:match("%d+$")) do
    local text = parts_map:lookup(key .. "/" .. index)
    if not text then return nil end
    for item in text:gmatch("[^,]+") do list[#list + 1] = split(item) end
  end
  if count + #list > MAX_KEPT then kept, count = {}, 0 end
  kept[key], count = list, count + #list
  return list
end

-- The list that the rules of a request name; when it was replaced a moment ago, the one that is there now.
local function list_of(txn, position)
  local backend = txn.f:be_name()
  local name = split(txn:get_var("txn.rules") or "")[position]
  local list = name and name ~= "" and read_list(backend, name)
  if list then return list end
  name = split(rules_map:lookup(backend) or "")[position]
  return name and name ~= "" and read_list(backend, name) or {}
end

-- A pattern with no group but this one: the edge's own groups end at the first that took no part in a match.
local function with_group(pattern, wanted)
  local text, at, group, class = {}, 1, 0, false
  while at <= #pattern do
    local character = pattern:sub(at, at)
    if character == "\\" then
      at = at + 1
      character = character .. pattern:sub(at, at)
    elseif class then class = character ~= "]"
    elseif character == "[" then class = true
    elseif character == "(" and pattern:sub(at + 1, at + 1) ~= "?" then
      group = group + 1
      if group ~= wanted then character = "(?:" end
    end
    text[#text + 1], at = character, at + 1
  end
  return table.concat(text)
end

local function compiled(rule, group)
  if rule.patterns[group] == nil then
    local fine, pattern = Regex.new("(*LIMIT_MATCH=LIMIT)^(?s:" .. with_group(rule.from, group) .. ")$", true)
    rule.patterns[group] = fine and pattern or false
  end
  return rule.patterns[group]
end

-- What a group of a rule stands for in a path, as a function of its number; nothing when the rule does not match.
local function match(rule, path)
  local kind, from = rule[1], rule.from
  if kind == "exact" then return path == from and function() return "" end or nil end
  if kind == "regex" then
    local pattern = compiled(rule, 0)
    if not pattern or not pattern:exec(path) then return nil end
    return function(number)
      local narrow = compiled(rule, number)
      local matched, groups = false, nil
      if narrow then matched, groups = narrow:match(path) end
      return matched and groups[2] or ""
    end
  end
  if path:sub(1, #from) ~= from then return nil end
  local rest = path:sub(#from + 1)
  if from:sub(-1) ~= "/" and rest ~= "" and rest:sub(1, 1) ~= "/" then return nil end
  return function(number) return number == 1 and rest or "" end
end

local function locate(rule, group, query)
  local to = rule.to
  local location = to:gsub("()%$([1-9])", function(at, number)
    local value = group(tonumber(number))
    local bare = to:sub(1, at - 1):lower():match("^https?://[^/?#]+$")
    if bare and value ~= "" and not value:match("^[/?#]") then return "/" .. value end
    return value
  end)
  if not to:lower():match("^https?://") then location = "/" .. location:gsub("^[/\\]*", "") end
  if rule[5] ~= "1" or not query or query == "" then return location end
  local target, fragment = location:match("^([^#]*)(.*)$")
  return target .. (target:find("?", 1, true) and "&" or "?") .. query .. fragment
end

core.register_action("redirect", { "http-req" }, function(txn)
  local path = txn.f:path()
  if not path then return end
  for _, rule in ipairs(list_of(txn, REDIRECTS)) do
    if not rule.patterns then rule.from, rule.to, rule.patterns = decode(rule[2]), decode(rule[3]), {} end
    local group = match(rule, path)
    if group then
      local reply = txn:reply({ status = tonumber(rule[4]) })
      reply:add_header("location", locate(rule, group, txn.f:query()))
      reply:add_header("content-length", "0")
      txn:done(reply)
    end
  end
end)

core.register_action("set_headers", { "http-res" }, function(txn)
  local secure = txn.f:fe_name() == "https" or txn:get_var("txn.told_https")
  for _, header in ipairs(list_of(txn, HEADERS)) do
    header.value = header.value or decode(header[2])
    if header[1]:lower() ~= "strict-transport-security" or secure then txn.http:res_set_header(header[1], header.value) end
  end
end)
`.trimStart()

/**
 * How much work one comparison of a pattern may be: enough for every sensible one, a fraction of a
 * millisecond for the worst.
 */
const MATCH_LIMIT = 20_000

export const renderProgram = (): string =>
  `${PROGRAM}\n${WAKE_PROGRAM}`
    .replace('LIMIT_MATCH=LIMIT', `LIMIT_MATCH=${MATCH_LIMIT}`)
    .replace('(txn, REDIRECTS)', `(txn, ${RULE_FIELDS.redirects})`)
    .replace('(txn, HEADERS)', `(txn, ${RULE_FIELDS.headers})`)
