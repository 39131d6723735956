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
    this.fields = fieldsOf(error?.details ?? [])
  }
}

/** What is wrong by field. A field that takes a list shows which of its entries is wrong, counted from 1. */
function fieldsOf(details: readonly { path: string; message: string }[]): Record<string, string> {
  const fields: Record<string, string> = {}
  for (const { path, message } of details) {
    const [, list, index] = /^([a-z_]+)\.(\d+)$/.exec(path) ?? []
    const text = inPages(message)
    if (list === undefined) fields[path] = text.replace(/^./, (one) => one.toUpperCase())
    else fields[list] ??= `Entry ${Number(index) + 1} ${text}`
  }
  return fields
}

/** The sentence to show for anything that was thrown. */
export const sentenceOf = (error: unknown): string =>
  error instanceof Error ? error.message : messages.network
