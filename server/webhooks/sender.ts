import type { Clock } from '#server/kernel/clock'
import type { Log } from '#server/kernel/log'
import type { Mail } from '#server/platform/mail/mail'
import { MailError } from '#server/platform/mail/mail'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import type { DeliveryRepository, DeliveryRow } from './deliveries.ts'
import type { NoticeRequest } from './notifiers/notifier.ts'
import { createPlaces, MOST_AT_ONCE } from './places.ts'

/** Seconds between attempts: quick at first, then patient, 24 hours in all. */
const WAITS_S = [10, 30, 120, 300, 900, 1800, 3600, 7200, 10_800, 14_400, 14_400, 14_400, 14_400]
/** Messages that are looked at together: more than may be under way, so that some of them are not. */
const BATCH = 2 * MOST_AT_ONCE
/** Twice what a receiver may ask for. */
const LONGEST_WAIT_MS = 2 * 86_400_000
const TIMEOUT_MS = 10_000
const MOST_ANSWER_BYTES = 65_536
/** A stop waits so long for receivers that hang. */
const STOP_MS = 2_000

/** What came of one attempt. */
export interface Attempt {
  succeeded: boolean
  response_status: number | null
  duration_ms: number
  /** Why it failed, without anything that the receiver said. */
  detail: string | null
  /** Whether the receiver asked for no more messages. */
  is_gone: boolean
  /** Seconds after which the receiver wants to be asked again. */
  retry_after_s?: number
}

const UNREADABLE: Attempt = {
  succeeded: false,
  response_status: null,
  duration_ms: 0,
  detail: 'The settings of this webhook cannot be opened. Save them again.',
  is_gone: false,
}

/** A delivery of several requests, which makes its attempt by itself. Never throws. */
export interface OwnWay {
  attempt(signal: AbortSignal): Promise<Attempt>
}

export interface SenderOptions {
  clock: Clock
  log: Log
  client: GuardedClient
  /** Read at each message: the settings may change. */
  mail(): Mail
  deliveries: DeliveryRepository
  /** The project whose messages those of a webhook are, or what stands for itself. */
  payerOf(webhook_id: string): string
  /** Builds the request of a delivery, or says why there is none. */
  requestOf(row: DeliveryRow): NoticeRequest | OwnWay | { ignored: string }
  /** Hears of a delivery that ended, in whatever way. */
  ended(row: DeliveryRow, attempt: Attempt): void
  /** How long a stop waits for receivers that hang. Default 2,000. */
  stop_ms?: number
}

const secondsOf = (retry_after: string | undefined): number | undefined => {
  const seconds = Number(retry_after)
  return retry_after && Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 86_400) : undefined
}

/** Makes one attempt. Never throws. */
export async function attemptRequest(
  request: NoticeRequest,
  { client, mail, clock }: Pick<SenderOptions, 'client' | 'mail' | 'clock'>,
  signal?: AbortSignal,
): Promise<Attempt> {
  const begun = clock.monotonic_ms()
  const result = (rest: Partial<Attempt>): Attempt => ({
    succeeded: false,
    response_status: null,
    detail: null,
    is_gone: false,
    ...rest,
    duration_ms: Math.round(clock.monotonic_ms() - begun),
  })
  try {
    if (request.mail) {
      await mail().send(request.mail, signal)
      return result({ succeeded: true })
    }
    const { url, method, headers, body } = request
    const answer = await client.send(url, {
      method,
      headers,
      body,
      ...(signal ? { signal } : {}),
      timeout_ms: TIMEOUT_MS,
      max_bytes: MOST_ANSWER_BYTES,
    })
    await answer.discard()
    const succeeded = answer.status >= 200 && answer.status < 300
    return result({
      succeeded,
      response_status: answer.status,
      detail: succeeded ? null : `The receiver answered ${answer.status}.`,
      is_gone: answer.status === 410,
      retry_after_s: secondsOf(answer.headers['retry-after']),
    })
  } catch (error) {
    const is_known = error instanceof OutboundError || error instanceof MailError
    return result({ detail: is_known ? error.message : 'The message could not be sent.' })
  }
}

/** Sends what is due, each webhook for itself, and tries again with growing waits for a day. */
export function createSender(options: SenderOptions) {
  const { clock, log, deliveries } = options
  const places = createPlaces(options)
  const under_way = new Map<string, Promise<void>>()
  let timer: NodeJS.Timeout | undefined
  let is_running = false
  let stopping = new AbortController()

  const finish = (row: DeliveryRow, attempt: Attempt): Attempt => {
    // What a stop has cut off is due still.
    if (stopping.signal.aborted && !attempt.succeeded) return attempt
    const attempts = row.attempts + 1
    const wait_s = Math.max(WAITS_S[row.attempts] ?? 0, attempt.retry_after_s ?? 0)
    const is_over = attempt.succeeded || attempt.is_gone || attempts > WAITS_S.length
    const unfinished = is_over ? 'failed' : 'pending'
    const next: DeliveryRow = {
      ...row,
      attempts,
      response_status: attempt.response_status,
      detail: attempt.detail,
      duration_ms: attempt.duration_ms,
      status: attempt.succeeded ? 'succeeded' : unfinished,
      next_attempt_at: is_over ? null : new Date(clock.now() + wait_s * 1000).toISOString(),
      finished_at: is_over ? clock.iso() : null,
    }
    deliveries.update(next)
    if (is_over) options.ended(next, attempt)
    return attempt
  }

  /** The request of a delivery; a failed attempt when it cannot be built, since it would be due again at once. */
  const requestOf = (row: DeliveryRow): ReturnType<SenderOptions['requestOf']> => {
    try {
      return options.requestOf(row)
    } catch (error) {
      log.error('The request of a webhook could not be built', { delivery: row.id, error })
      return { attempt: () => Promise.resolve(UNREADABLE) }
    }
  }

  const send = async (row: DeliveryRow): Promise<void> => {
    const leave = places.enter(row.webhook_id)
    const begun = clock.monotonic_ms()
    let attempt: Attempt | undefined
    try {
      const request = requestOf(row)
      // Each of several requests may be quick enough; the place is held for as long as all of them take.
      if ('attempt' in request) {
        const made = await request.attempt(stopping.signal)
        attempt = finish(row, { ...made, duration_ms: Math.round(clock.monotonic_ms() - begun) })
      } else if (!('ignored' in request))
        attempt = finish(row, await attemptRequest(request, options, stopping.signal))
      else
        deliveries.update({
          ...row,
          status: 'ignored',
          detail: request.ignored,
          next_attempt_at: null,
          finished_at: clock.iso(),
        })
    } finally {
      leave(attempt)
    }
  }

  const begin = (row: DeliveryRow): void => {
    const sending = send(row)
      .catch((error: unknown) => log.error('A webhook could not be sent', { delivery: row.id, error }))
      .finally(() => {
        under_way.delete(row.id)
        wake()
      })
    under_way.set(row.id, sending)
  }
  /** Begins some of what is due. False when nothing of it can be begun now. */
  const beginSome = (): boolean => {
    const before = under_way.size
    for (const is_heavy of [false, true]) {
      if (!places.hasRoom(is_heavy)) break
      const { webhooks, projects } = places.full()
      const but = { webhooks, projects: is_heavy ? projects : [...projects, ...places.heavy()] }
      for (const row of deliveries.due(clock.iso(), but, BATCH))
        if (
          places.hasRoom(is_heavy) &&
          !under_way.has(row.id) &&
          !places.isFull(row.webhook_id) &&
          (is_heavy || !places.isHeavy(row.webhook_id))
        )
          begin(row)
    }
    return under_way.size > before
  }

  /** Begins whatever is due and fits, and sets the clock for what is due next. */
  const wake = (): void => {
    if (!is_running) return
    deliveries.mendAhead(new Date(clock.now() + LONGEST_WAIT_MS).toISOString(), clock.iso())
    while (beginSome());
    const next = deliveries.nextDue()
    clearTimeout(timer)
    if (!next || under_way.size >= MOST_AT_ONCE) return
    const wait_ms = Date.parse(next) - clock.now()
    // What is due but waits for its turn is begun when a message of the same webhook ends.
    if (wait_ms > 0) timer = setTimeout(wake, Math.min(wait_ms, 3_600_000)).unref()
  }

  return {
    wake,
    start(): void {
      is_running = true
      stopping = new AbortController()
      wake()
    },
    async stop(): Promise<void> {
      is_running = false
      clearTimeout(timer)
      const late = setTimeout(() => stopping.abort(), options.stop_ms ?? STOP_MS)
      await Promise.allSettled(under_way.values())
      clearTimeout(late)
    },
    /** Resolves once nothing that is due is left. For tests. */
    async idle(): Promise<void> {
      wake()
      while (under_way.size > 0) await Promise.allSettled(under_way.values())
    },
  }
}
export type Sender = ReturnType<typeof createSender>
