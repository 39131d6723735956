import * as v from 'valibot'
import type { Actor } from '#server/kernel/access'
import { ApiError } from '#server/kernel/errors'
import { Hostname, SslModeName, Www } from './fields.ts'
import type { DomainRow } from './repository.ts'

const json = v.pipe(
  v.string(),
  v.maxLength(65_536),
  v.check((text) => {
    try {
      return JSON.parse(text) !== undefined
    } catch {
      return false
    }
  }),
)
const flag = v.picklist([0, 1])
/** What a copy of an app keeps of a domain: what a user sets. Of a password it holds the digest only. */
const Copy = v.object({
  hostname: Hostname,
  path: v.pipe(v.string(), v.maxLength(500), v.startsWith('/')),
  strip_path: flag,
  port: v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535))),
  service: v.nullable(v.pipe(v.string(), v.maxLength(63))),
  ssl_mode: SslModeName,
  force_https: flag,
  www: Www,
  counterpart: v.nullable(v.pipe(v.string(), v.maxLength(255))),
  maintenance: flag,
  headers: json,
  hsts: v.nullable(json),
  ip_allow: json,
  error_pages: json,
  basic_auth: v.nullable(json),
  body_limit_bytes: v.nullable(v.number()),
  request_timeout_seconds: v.nullable(v.number()),
})
export type DomainCopy = v.InferOutput<typeof Copy>
const COLUMNS = Object.keys(Copy.entries) as (keyof DomainCopy)[]

const copyOf = (row: DomainRow): DomainCopy =>
  Object.fromEntries(COLUMNS.map((name) => [name, row[name]])) as unknown as DomainCopy

export interface DomainCopyParts {
  ofApp(app_id: string): DomainRow[]
  insert(actor: Actor, app_id: string, copy: DomainCopy): void
  update(actor: Actor, id: string, columns: Omit<DomainCopy, 'hostname'>): void
}

/** Domains as backups of apps see them. The automatic name is no part of them: every app has its own. */
export function createDomainCopies({ ofApp, insert, update }: DomainCopyParts) {
  const custom = (app_id: string) => ofApp(app_id).filter(({ kind }) => kind !== 'automatic')
  return {
    snapshot: (app_id: string): DomainCopy[] => custom(app_id).map(copyOf),
    /**
     * Gives an app the names that a copy says. A name that somebody has by now stays with them: answers which
     * were left out, and why. It serves once DNS proves it, like any other.
     */
    restore(actor: Actor, app_id: string, copies: readonly unknown[]): string[] {
      return copies.flatMap((given) => {
        const { success, output, issues } = v.safeParse(Copy, given)
        if (!success) return [`A domain in the backup cannot be read: ${issues[0].message}`]
        const { hostname, ...columns } = output
        try {
          const present = custom(app_id).find((row) => row.hostname === hostname && row.path === columns.path)
          if (!present) insert(actor, app_id, output)
          else if (JSON.stringify(copyOf(present)) !== JSON.stringify(output))
            update(actor, present.id, columns)
          return []
        } catch (error) {
          if (error instanceof ApiError) return [`${hostname}: ${error.message}`]
          throw error
        }
      })
    },
  }
}
