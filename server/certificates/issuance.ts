import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { Secrets } from '#server/kernel/secrets'
import type { Acme } from '#server/platform/acme/acme'
import type { Budget } from './budget.ts'
import { readChain, readKey } from './chain.ts'
import { keyContext } from './edge.ts'
import type { MakeKey } from './keys.ts'
import type { Lifecycle } from './lifecycle.ts'
import { type Hostnames, namesOfDomain } from './hostnames.ts'
import type { CertificatePorts, VerifiedDomain } from './ports.ts'
import {
  type CertificateRepository,
  type CertificateRow,
  namesIn,
  type NewCertificateRow,
} from './repository.ts'
import { covers, type NewCertificate, type NewCsr } from './schema.ts'

export interface IssuanceOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  audit: AuditTrail
  acme: Pick<Acme, 'createRequest'>
  makeKey: MakeKey
  repository: CertificateRepository
  lifecycle: Lifecycle
  budget: Budget
  names: Hostnames
  ports: CertificatePorts
  /** The edge follows after the commit. */
  deliver(project_id: string): void
}
type Draft = Pick<NewCertificateRow, 'project_id' | 'source' | 'key_type'> &
  Partial<Pick<NewCertificateRow, 'domain_id' | 'challenge' | 'created_by' | 'auto_renew' | 'request'>> & {
    names: readonly string[]
  }

/** All of a project are looked at for each change of one; those that its domains ask for do not count. */
const MOST_BY_HAND = 500

/** The ways in which certificates come to be. */
export function createIssuance({
  db,
  clock,
  secrets,
  audit,
  acme,
  makeKey,
  repository,
  lifecycle,
  budget,
  names,
  ports,
  deliver,
}: IssuanceOptions) {
  function insert(
    { names: given, ...draft }: Draft,
    id = newId('crt'),
    next_key: string | null = null,
  ): CertificateRow {
    repository.insert({
      id,
      name: given[0]!,
      names: JSON.stringify(given),
      status: 'pending',
      domain_id: null,
      challenge: null,
      request: null,
      auto_renew: 1,
      created_by: null,
      ...draft,
      next_key: next_key === null ? null : secrets.seal(next_key, keyContext('next_key', id)),
      created_at: clock.iso(),
    })
    return repository.find(id)!
  }
  /** Throws 409 when a project may not have one more by hand, or those that it has once some came with a move. */
  function requireRoom(project_id: string, adding = 1): void {
    if (repository.countByHand(project_id) + adding > MOST_BY_HAND)
      throw conflict(
        `A project may have ${MOST_BY_HAND} certificates at most that were uploaded or asked for by hand. Delete one first.`,
      )
  }
  const note = (actor: Actor, action: string, row: CertificateRow) =>
    audit.record(actor, {
      action: `certificate.${action}`,
      resource_type: 'certificate',
      resource_id: row.id,
      project_id: row.project_id,
      after: { names: namesIn(row), source: row.source },
    })

  /** Begins an attempt, or says when there will be one. */
  function begin(row: CertificateRow): void {
    const wait = budget.waitFor(row)
    if (wait)
      repository.setFailure(
        row.id,
        { failures: 0, last_error: wait.reason, next_attempt_at: wait.until, blocked_until: null },
        clock.iso(),
      )
    else lifecycle.begin(row)
  }

  function order(actor: Actor, project_id: string, body: NewCertificate): string {
    const domain = body.domain_id === undefined ? undefined : names.domain(project_id, body.domain_id)
    const desired = body.names ?? (domain && namesOfDomain(domain))
    if (!desired)
      throw invalid('names', 'is required: name the hosts, a domain_id, or send a certificate to upload.')
    names.check(project_id, desired, body.names ? 'names' : 'domain_id')
    const wanted = [...desired].sort().join(' ')
    const same = repository
      .ofProject(project_id)
      .find(
        (row) =>
          row.source === 'acme' && row.status !== 'revoked' && namesIn(row).sort().join(' ') === wanted,
      )
    if (same) throw conflict(`There is a certificate for these names already (${same.id}). Renew that one.`)
    requireRoom(project_id)
    return db.tx(() => {
      const row = insert({
        project_id,
        names: desired,
        source: 'acme',
        key_type: body.key_type ?? ports.rules().key_type,
        challenge: body.challenge ?? null,
        auto_renew: body.auto_renew ? 1 : 0,
        created_by: actor.user_id,
      })
      note(actor, 'create', row)
      begin(row)
      return row.id
    })
  }

  /** The key that a signing request was made with. */
  function requestOf(project_id: string, csr_id: string): { row: CertificateRow; key: string } {
    const row = repository.find(csr_id)
    if (!row || row.project_id !== project_id || row.source !== 'csr') throw notFound('signing request')
    const column = row.next_key === null ? 'private_key' : 'next_key'
    return { row, key: secrets.open(row[column]!, keyContext(column, row.id)) }
  }

  function upload(actor: Actor, project_id: string, body: NewCertificate): string {
    if (body.names) throw invalid('names', 'cannot be given with a certificate, which names them itself.')
    if (body.private_key !== undefined && body.csr_id !== undefined)
      throw invalid('private_key', 'cannot be given with csr_id: the key of the signing request is here.')
    if (body.private_key === undefined && body.csr_id === undefined)
      throw invalid(
        'private_key',
        'is required with a certificate, unless csr_id tells which signing request it answers.',
      )
    const request = body.csr_id === undefined ? undefined : requestOf(project_id, body.csr_id)
    const pem = request?.key ?? body.private_key!
    const key = readKey(pem)
    const facts = readChain(body.certificate!, key, clock.now(), request !== undefined)
    const missing =
      body.domain_id === undefined
        ? undefined
        : namesOfDomain(names.domain(project_id, body.domain_id)).find(
            (name) => !facts.names.some((own) => covers(own, name)),
          )
    if (missing !== undefined)
      throw invalid(
        'certificate',
        `is not valid for ${missing}; it names ${facts.names.slice(0, 5).join(', ')}${facts.names.length > 5 ? ' and others' : ''}.`,
      )
    if (!request) requireRoom(project_id)
    return db.tx(() => {
      const row =
        request?.row ??
        insert({
          project_id,
          names: facts.names,
          source: 'upload',
          key_type: facts.key_type,
          auto_renew: 0,
          created_by: actor.user_id,
        })
      lifecycle.install(row, facts, String(key.export({ type: 'pkcs8', format: 'pem' })), null)
      note(actor, 'upload', repository.find(row.id)!)
      deliver(project_id)
      return row.id
    })
  }

  return {
    requireRoom,
    create(actor: Actor, project_id: string, body: NewCertificate): string {
      if (body.certificate !== undefined) return upload(actor, project_id, body)
      if (body.private_key !== undefined || body.csr_id !== undefined)
        throw invalid('certificate', 'is required with a private key or a signing request.')
      return order(actor, project_id, body)
    },
    async createCsr(actor: Actor, project_id: string, body: NewCsr): Promise<string> {
      requireRoom(project_id)
      const key = await makeKey(project_id, body.key_type)
      const request = await acme.createRequest(key, body.names)
      return db.tx(() => {
        requireRoom(project_id)
        const row = insert(
          {
            project_id,
            names: body.names,
            source: 'csr',
            key_type: body.key_type,
            auto_renew: 0,
            created_by: actor.user_id,
            request,
          },
          newId('crt'),
          key,
        )
        note(actor, 'csr', row)
        return row.id
      })
    },
    /** What the SSL mode of a domain asks for, when it is not there yet. */
    ensureFor(domain: VerifiedDomain): void {
      if (domain.ssl_mode !== 'acme' && domain.ssl_mode !== 'self_signed') return
      const expected = namesOfDomain(domain)
      const source = domain.ssl_mode
      // One with a name that the project has no more cannot be renewed: it serves until there is another.
      const there = repository
        .ofProject(domain.project_id)
        .some(
          (row) =>
            row.source === source &&
            row.status !== 'revoked' &&
            expected.every((name) => namesIn(row).some((own) => covers(own, name))) &&
            (source !== 'acme' || names.areVerified(row.project_id, namesIn(row))),
        )
      if (there) return
      const row = insert({
        project_id: domain.project_id,
        names: expected,
        source,
        domain_id: domain.id,
        key_type: source === 'acme' ? ports.rules().key_type : 'ecdsa',
      })
      if (source === 'acme') begin(row)
      else lifecycle.selfSign(row)
    },
  }
}
