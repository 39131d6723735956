import * as v from 'valibot'
import { pagingEntries, Timestamp } from '#server/kernel/schemas'

export const DomainStatus = v.picklist(['pending', 'verified', 'active', 'failed'])
export type DomainStatus = v.InferOutput<typeof DomainStatus>
export const Domain = v.pipe(v.object({
  id: v.string(),
  app_id: v.string(),
  hostname: v.pipe(v.string(), v.examples(['shop.apps.example.com'])),
  kind: v.pipe(v.picklist(['automatic', 'custom']), v.description('`automatic`: assigned on creation of the app.')),
  status: DomainStatus,
  path: v.string(),
  port: v.nullable(v.number()),
  ssl_mode: v.picklist(['off', 'acme', 'custom', 'self_signed', 'external']),
  url: v.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
}), v.title('Domain'))
export const DomainQuery = v.strictObject({
  ...pagingEntries,
  app_id: v.optional(v.pipe(v.string(), v.maxLength(64), v.description('Only domains of this app.'))),
  status: v.optional(DomainStatus),
})
