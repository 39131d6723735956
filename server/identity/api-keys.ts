import { randomBytes } from 'node:crypto'
import { type Actor, projectRole } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, forbidden, invalid, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Account } from './account.ts'
import { sha256 } from './authenticate.ts'
import type { ApiKeyRepository, ApiKeyRow } from './credentials-repository.ts'
import type { Revocations } from './revocations.ts'
import type { ApiKey, NewApiKey } from './schema.ts'
import type { Told } from './told.ts'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const SECRET_LENGTH = 40
const PER_USER = 200

const parseList = (text: string | null) => (text === null ? null : (JSON.parse(text) as string[]))
const view = (row: ApiKeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  scope: row.scope,
  project_ids: parseList(row.project_ids),
  addresses: parseList(row.addresses),
  expires_at: row.expires_at,
  created_at: row.created_at,
  last_used_at: row.last_used_at,
  last_used_address: row.last_used_address,
})

export interface ApiKeyParts {
  db: Db
  clock: Clock
  audit: AuditTrail
  keys: ApiKeyRepository
  account: Account
  revocations: Revocations
  told: Told
}

/**
 * API keys: `ptr_<id>_<secret>`, of which only a hash is kept. They act with their owner's rights at the time
 * of the call.
 */
export function createApiKeys({ db, clock, audit, keys, account, revocations, told }: ApiKeyParts) {
  const get = (actor: Actor, id: string): ApiKeyRow => {
    const key = keys.find(id)
    if (key?.user_id !== actor.user_id) throw notFound('API key')
    return key
  }
  return {
    list(actor: Actor, paging: Paging) {
      const { rows, total } = keys.page(actor.user_id, ...limits(paging))
      return paged({ rows: rows.map(view), total }, paging)
    },
    async create(actor: Actor, given: NewApiKey): Promise<ApiKey & { key: string }> {
      // A leaked key must not be able to make others that outlive it or may do more.
      if (actor.method === 'api_key')
        throw forbidden('An API key cannot create API keys. Log in to create one.')
      const user = account.own(actor)
      for (const [index, project_id] of (given.project_ids ?? []).entries()) {
        if (!projectRole(actor, project_id))
          throw invalid(`project_ids.${index}`, 'is not a project that you can see.')
      }
      if (given.expires_at && Date.parse(given.expires_at) <= clock.now())
        throw invalid('expires_at', 'must be in the future.')
      if (user.totp_seed !== null) await account.stepUp(actor, user, given, 'password')
      const secret = Array.from(randomBytes(SECRET_LENGTH), (byte) => ALPHABET[byte & 31]).join('')
      const row: ApiKeyRow = {
        id: newId('key'),
        user_id: user.id,
        name: given.name,
        secret_hash: sha256(secret),
        scope: given.scope,
        project_ids: given.project_ids ? JSON.stringify(given.project_ids) : null,
        addresses: given.addresses ? JSON.stringify(given.addresses) : null,
        expires_at: given.expires_at ?? null,
        created_at: clock.iso(),
        last_used_at: null,
        last_used_address: null,
      }
      db.tx(() => {
        if (keys.count(user.id) >= PER_USER)
          throw conflict(`There are ${PER_USER} API keys already. Revoke one that is not used any more.`)
        keys.insert(row)
        audit.record(actor, {
          action: 'api_key.create',
          resource_type: 'api_key',
          resource_id: row.id,
          project_id: null,
          after: { ...view(row) },
        })
        told.apiKey('created', user.id, row.id)
      })
      return { ...view(row), key: `ptr_${row.id.slice('key_'.length)}_${secret}` }
    },
    revoke(actor: Actor, id: string): void {
      const key = get(actor, id)
      db.tx(() => {
        keys.delete(id)
        audit.record(actor, {
          action: 'api_key.revoke',
          resource_type: 'api_key',
          resource_id: id,
          project_id: null,
          before: { name: key.name, scope: key.scope },
        })
        revocations.announce({ kind: 'api_key', id, user_id: key.user_id })
        told.apiKey('revoked', key.user_id, id)
      })
    },
  }
}
export type ApiKeys = ReturnType<typeof createApiKeys>
