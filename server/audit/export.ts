import { Readable } from 'node:stream'
import { createPace } from '#server/kernel/pace'
import type { AuditLine } from './schema.ts'

const COLUMNS = [
  'created_at',
  'actor_id',
  'actor_email',
  'method',
  'credential_id',
  'action',
  'resource_type',
  'resource_id',
  'resource_name',
  'project_id',
  'before',
  'after',
  'address',
  'request_id',
  'id',
] as const

/** Control characters could forge lines or steer a terminal; they are written as `\u00xx`. */
const escapeControl = (text: string) =>
  text.replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/**
 * One field of CSV. A text that a spreadsheet would take for a formula is made one by a leading
 * apostrophe.
 */
function field(value: string | null): string {
  if (value === null) return ''
  const text = escapeControl(value)
  return `"${(/^[=+\-@]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`
}

function valuesOf(line: AuditLine): (string | null)[] {
  const json = (value: unknown) => (value === null ? null : JSON.stringify(value))
  const { actor, resource } = line
  return [
    line.created_at,
    actor.id,
    actor.email,
    actor.method,
    actor.credential_id,
    line.action,
    resource.type,
    resource.id,
    resource.name,
    line.project_id,
    json(line.before),
    json(line.after),
    line.address,
    line.request_id,
    line.id,
  ]
}

const RENDER = {
  csv: {
    head: `${COLUMNS.join(',')}\r\n`,
    line: (line: AuditLine) => `${valuesOf(line).map(field).join(',')}\r\n`,
    media_type: 'text/csv; charset=utf-8',
  },
  ndjson: {
    head: '',
    line: (line: AuditLine) => `${escapeControl(JSON.stringify(line))}\n`,
    media_type: 'application/x-ndjson',
  },
}

/**
 * Lines in pieces as a stream of text, made as fast as the client takes them. Of all that are
 * under way one makes a piece in each round of the event loop: some hundred of them would else
 * keep everybody waiting, each with its own.
 * @param owner for whom it is made.
 */
export function exportLines(
  pieces: Iterable<readonly AuditLine[]>,
  format: 'csv' | 'ndjson',
  owner: string,
): { stream: Readable; media_type: string } {
  const { head, line, media_type } = RENDER[format]
  const parts = async function* () {
    const pace = createPace(owner)
    await pace.pause()
    if (head) yield head
    for (const piece of pieces) {
      if (piece.length > 0) yield piece.map(line).join('')
      await pace.pause()
    }
  }
  return { stream: Readable.from(parts()), media_type }
}
