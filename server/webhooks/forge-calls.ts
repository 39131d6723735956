import type { Clock } from '#server/kernel/clock'
import { parseForeignJson } from '#server/kernel/json'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import type { ForgeRequest } from './forges/forge.ts'
import { JSON_BODY } from './notifiers/notifier.ts'
import type { Attempt } from './sender.ts'

const TIMEOUT_MS = 10_000
/** A page of long comments. */
const MOST_BYTES = 8 * 1024 * 1024
/** What a forge answered: how the attempt went, and the body where it is JSON. */
export interface ForgeAnswer {
  attempt: Attempt
  body: unknown
}
export const isFine = ({ attempt }: ForgeAnswer): boolean => attempt.succeeded

/** Calls of the API of a forge, whose answers are read. Never throws. */
export function createForgeCalls({ client, clock }: { client: GuardedClient; clock: Clock }) {
  return async ({ method, url, headers, body }: ForgeRequest, signal?: AbortSignal): Promise<ForgeAnswer> => {
    const begun = clock.monotonic_ms()
    const result = (rest: Partial<Attempt>, answer?: unknown): ForgeAnswer => ({
      attempt: {
        succeeded: false,
        response_status: null,
        detail: null,
        is_gone: false,
        ...rest,
        duration_ms: Math.round(clock.monotonic_ms() - begun),
      },
      body: answer,
    })
    try {
      const answer = await client.send(url, {
        method,
        headers: { accept: 'application/json', ...(body === undefined ? {} : JSON_BODY), ...headers },
        ...(body === undefined ? {} : { body }),
        ...(signal ? { signal } : {}),
        timeout_ms: TIMEOUT_MS,
        max_bytes: MOST_BYTES,
      })
      const text = await answer.text()
      const { status: response_status } = answer
      if (response_status < 200 || response_status > 299)
        return result({ response_status, detail: `The forge answered ${response_status}.` })
      try {
        return result({ succeeded: true, response_status }, parseForeignJson(text))
      } catch {
        return result({
          response_status,
          detail: 'The forge answered with something that is no JSON that can be read.',
        })
      }
    } catch (error) {
      return result({
        detail: error instanceof OutboundError ? error.message : 'The forge could not be asked.',
      })
    }
  }
}
export type ForgeCalls = ReturnType<typeof createForgeCalls>
