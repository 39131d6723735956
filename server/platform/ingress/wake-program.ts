import { EDGE_WAKE_SOCKET } from './wake-socket.ts'
import { WAKE_LIMIT_MS } from './ingress.ts'

/** How long a request waits while nobody takes the word: a restart of Portreeve takes less. */
const PATIENCE_MS = 3_000
/** An app that is waited for is asked for again after this time. */
const AGAIN_MS = 1_000
const RETRY_MS = 200
/** A thread that asks may be ended with its client; then another request asks. */
const ANSWER_MS = 2_000
/**
 * Pauses between two looks of a request that waits: a twentieth of what it has waited already, so that thousands of
 * them cost the edge little and none is late by more than that.
 */
const POLL_MS = { first: 20, last: 500, share: 20 }

/**
 * Holds a request of an app that sleeps, in the edge itself: nothing of it is read or copied, so that bodies,
 * upgrades and time limits are what they are for any other request, and it goes to the app's own server in
 * the end. Of all requests that wait for an app on a thread one asks Portreeve, each second.
 *
 * A worker that is being replaced never learns of new servers. It sends the client back to the same address,
 * where the new worker listens.
 */
export const WAKE_PROGRAM = String.raw`
local waking = {}

local function now_ms()
  local now = core.now()
  return now.sec * 1000 + math.floor(now.usec / 1000)
end

local function ask_to_wake(app)
  local socket = core.tcp()
  socket:settimeout(${ANSWER_MS / 1000})
  local answer
  if socket:connect("${EDGE_WAKE_SOCKET}") and socket:send(app .. "\n") then answer = socket:receive("*l") end
  socket:close()
  return answer
end

local function ask_once(app, state)
  state.next = now_ms() + ${ANSWER_MS + 500}
  local answer, now = ask_to_wake(app), now_ms()
  if answer == "held" then
    state.silent_since, state.next = nil, now + ${AGAIN_MS}
  elseif answer == "refused" then
    state.silent_since, state.refused_at, state.next = nil, now, now
  else
    state.silent_since, state.next = state.silent_since or now, now + ${RETRY_MS}
  end
end

core.register_action("wake", { "http-req" }, function(txn)
  local app = split(txn:get_var("txn.route") or "")[2]
  if not app or app == "" then return end
  local state = waking[app] or { next = 0 }
  waking[app] = state
  local began = now_ms()
  while txn.f:nbsrv() == 0 do
    local now = now_ms()
    if now - began >= ${WAKE_LIMIT_MS} then return end
    local stopping = txn.f:stopping()
    if stopping == true or stopping == 1 then
      if txn.sf:req_fhdr("upgrade") ~= "" then return end
      local reply, target = txn:reply({ status = 307 }), txn.f:pathq()
      -- Two slashes at the beginning of an address are followed by a host.
      reply:add_header("location", (target:match("^/[/\\]") and "/." or "") .. target)
      reply:add_header("content-length", "0")
      txn:done(reply)
    end
    if now >= state.next then ask_once(app, state) end
    if state.refused_at and state.refused_at >= began then return end
    if state.silent_since and now_ms() - state.silent_since >= ${PATIENCE_MS} then return end
    core.msleep(math.floor(math.max(${POLL_MS.first}, math.min(${POLL_MS.last}, (now_ms() - began) / ${POLL_MS.share}))))
  end
end)
`.trimStart()
