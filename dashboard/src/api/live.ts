import { ref } from 'vue'

/** One message of the server, as it came. */
export interface Frame {
  type: string
  channel: string | null
  cursor: string | null
  data: unknown
}
type Listener = (frame: Frame) => void

interface Channel {
  listeners: Set<Listener>
  cursor: string | null
}

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 20_000
const PING_MS = 25_000
/** Code with which the server ends the connection of a session that is no more. */
const UNAUTHORIZED = 4401

/** Whether what is shown follows the server. */
export const live_state = ref<'off' | 'open' | 'lost'>('off')

const channels = new Map<string, Channel>()
const reopened = new Set<() => void>()
const shut = new Set<() => void>()
/** Channels that are open for this connection alone: a lost connection ends them. */
const sessions = new Map<string, Listener>()
let socket: WebSocket | undefined
let attempts = 0
let wanted = false
let timer: ReturnType<typeof setTimeout> | undefined
let pings: ReturnType<typeof setInterval> | undefined

const send = (message: object) => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
}
function subscribe(name: string, { cursor }: Channel): void {
  send({ type: 'subscribe', channel: name, ...(cursor === null ? {} : { after: cursor }) })
}

/** Type of the frame that stands for what was missed and cannot be had any more. */
export const GAP = 'gap'

function hear(text: string): void {
  const frame = JSON.parse(text) as Frame
  const session = frame.channel === null ? undefined : sessions.get(frame.channel)
  if (session) return session(frame)
  const channel = frame.channel === null ? undefined : channels.get(frame.channel)
  if (!channel) return
  if (frame.type === 'error' && (frame.data as { code?: string }).code === 'BAD_REQUEST' && channel.cursor) {
    channel.cursor = null
    // What came meanwhile is no longer kept: who shows all of it says so.
    for (const listener of [...channel.listeners]) listener({ ...frame, type: GAP })
    return subscribe(frame.channel!, channel)
  }
  if (frame.cursor !== null) channel.cursor = frame.cursor
  for (const listener of [...channel.listeners]) listener(frame)
}

/** Waits longer after each failure, and never the same time as every other page of this server. */
function waitAndConnect(): void {
  if (!wanted) return
  live_state.value = 'lost'
  const ceiling = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempts)
  attempts += 1
  clearTimeout(timer)
  timer = setTimeout(connect, ceiling / 2 + (Math.random() * ceiling) / 2)
}

function connect(): void {
  clearTimeout(timer)
  if (!wanted || (socket && socket.readyState <= WebSocket.OPEN)) return
  const opening = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/ws`)
  socket = opening
  let was_open = false
  opening.onopen = () => {
    was_open = true
    const again = attempts > 0
    attempts = 0
    live_state.value = 'open'
    for (const [name, channel] of channels) subscribe(name, channel)
    if (again) for (const listener of reopened) listener()
  }
  opening.onmessage = ({ data }) => hear(String(data))
  opening.onclose = ({ code }) => {
    if (socket !== opening) return
    for (const [channel, listener] of sessions)
      listener({ type: 'exit', channel, cursor: null, data: { reason: 'connection_lost', exit_code: null } })
    sessions.clear()
    waitAndConnect()
    // Of an answer that let none begin, a browser tells no reason.
    if (!was_open || code === UNAUTHORIZED) for (const listener of shut) listener()
  }
}

/** Connects at once instead of at the next try, where the connection is lost. */
export function connectNow(): void {
  if (live_state.value === 'lost') connect()
}
/** Tries no more until `connectNow`: it would be refused. */
export function pauseLive(): void {
  clearTimeout(timer)
}
const wake = () => {
  if (document.visibilityState === 'visible') connectNow()
}

/** Opens the connection, and keeps it open until `stopLive`. */
export function startLive(): void {
  if (wanted) return
  wanted = true
  attempts = 0
  connect()
  pings = setInterval(() => send({ type: 'ping' }), PING_MS)
  document.addEventListener('visibilitychange', wake)
  window.addEventListener('online', wake)
}

export function stopLive(): void {
  wanted = false
  clearTimeout(timer)
  clearInterval(pings)
  document.removeEventListener('visibilitychange', wake)
  window.removeEventListener('online', wake)
  socket?.close()
  socket = undefined
  channels.clear()
  live_state.value = 'off'
}

/** Who listens twice with one function ends each time for itself. */
function add(all: Set<() => void>, listener: () => void): () => void {
  const own = () => listener()
  all.add(own)
  return () => all.delete(own)
}
/** Hears of every time the connection is there again after it was lost. */
export const onReopened = (listener: () => void): (() => void) => add(reopened, listener)
/** Hears when the server did not want the connection: the session may have ended. */
export const onShut = (listener: () => void): (() => void) => add(shut, listener)

/**
 * Listens to a channel, from a cursor on when one is given. After a lost connection it goes on where it was.
 * @returns ends listening.
 */
export function listen(name: string, listener: Listener, after?: string): () => void {
  const known = channels.get(name)
  const channel = known ?? { listeners: new Set<Listener>(), cursor: after ?? null }
  const own: Listener = (frame) => listener(frame)
  channel.listeners.add(own)
  channels.set(name, channel)
  if (!known) subscribe(name, channel)
  return () => {
    channel.listeners.delete(own)
    if (channel.listeners.size > 0 || channels.get(name) !== channel) return
    channels.delete(name)
    send({ type: 'unsubscribe', channel: name })
  }
}

/** A channel that takes input, such as a terminal. */
export interface LiveSession {
  send(type: 'input' | 'resize', data: object): void
  end(): void
}

/** Opens a session; undefined while there is no connection. What was missed is never sent again. */
export function openSession(name: string, data: object, listener: Listener): LiveSession | undefined {
  if (socket?.readyState !== WebSocket.OPEN) return undefined
  sessions.set(name, listener)
  send({ type: 'subscribe', channel: name, data })
  const is_open = () => sessions.get(name) === listener
  return {
    send: (type, input) => is_open() && send({ type, channel: name, data: input }),
    end() {
      if (!is_open()) return
      sessions.delete(name)
      send({ type: 'unsubscribe', channel: name })
    },
  }
}
