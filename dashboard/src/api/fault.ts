import { inPages } from '@/lib/in-pages'
import { byStatus, messages } from '@/lib/messages'

interface ErrorBody {
  error?: {
    code?: string
    message?: string
    details?: { path: string; message: string }[]
    request_id?: string
  }
}

/** What the API refused, in its own words. Branch on `code`. */
export class ApiFault extends Error {
  readonly status: number
  readonly code: string
  /** What is wrong with single fields, by their dotted path. */
  readonly fields: Readonly<Record<string, string>>

  constructor(status: number, body: unknown) {
    const { error } = (typeof body === 'object' && body ? body : {}) as ErrorBody
    const usual = status === 0 ? messages.network : byStatus(status)
    const message = inPages(error?.message ?? usual)
    super(error?.request_id ? `${message} (${error.request_id})` : message)
    this.status = status
    this.code = error?.code ?? (status === 0 ? 'NETWORK' : 'UNKNOWN')
    this.fields = Object.fromEntries(
      (error?.details ?? []).map(({ path, message: text }) => [
        path,
        inPages(text).replace(/^./, (one) => one.toUpperCase()),
      ]),
    )
  }
}

/** The sentence to show for anything that was thrown. */
export const sentenceOf = (error: unknown): string =>
  error instanceof Error ? error.message : messages.network
