import type * as v from 'valibot'
import type { MailMessage } from '#server/platform/mail/mail'

/** How urgent a message is; chat services show it as a colour or priority. */
export type Severity = 'info' | 'success' | 'warning' | 'error'

/** What a receiver is told about one event. */
export interface Notice {
  /** Id of the delivery; the same for each attempt, so that a receiver can tell repeats. */
  id: string
  /** Type of the event, e.g. `deployment.failed`. */
  type: string
  /** Time of the event, ISO 8601 UTC. */
  created_at: string
  severity: Severity
  /** One sentence for people. */
  title: string
  /** Further lines for people; may be empty. */
  text: string
  /** Where to look; null when the installation has no address of its own. */
  url: string | null
  /** The event's own fields, for programs. */
  data: Record<string, unknown>
}

/** A request to a receiver; `mail` goes through the mail server of the settings instead. */
export type NoticeRequest =
  | { url: string; method: 'POST'; headers: Record<string, string>; body: string; mail?: undefined }
  | { mail: MailMessage; url?: undefined }

/** One kind of receiver: facts only, so that a new one is a new file. */
export interface Notifier<S extends v.GenericSchema = v.GenericSchema> {
  name: string
  /** Name as people write it. */
  title: string
  /** Whether it goes through the mail server of the settings, to the address that `describe` answers. */
  is_mail?: true
  /** What a user fills in; secrets are marked in the schema. */
  config: S
  /** What of the configuration may be shown: where messages go, without a secret. */
  describe(config: v.InferOutput<S>): string
  /** Builds the request. `now_s` is the time of the attempt in seconds since 1970. */
  request(notice: Notice, config: v.InferOutput<S>, now_s: number): NoticeRequest
}

export const defineNotifier = <S extends v.GenericSchema>(notifier: Notifier<S>): Notifier<S> => notifier

export const JSON_BODY = { 'content-type': 'application/json' }

export const json = (url: string, body: unknown, headers: Record<string, string> = {}): NoticeRequest => ({
  url,
  method: 'POST',
  headers: { ...JSON_BODY, ...headers },
  body: JSON.stringify(body),
})

/** Scheme and host of an address: the path of a chat service's hook is its password. */
export const originOf = (url: string): string => new URL(url).origin
