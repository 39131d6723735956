import type { Clock } from '#server/kernel/clock'
import {
  defineJob,
  Fatal,
  type JobRow,
  type Outcome,
  type StepContext,
  type Verdict,
} from '#server/kernel/jobs/definition'
import { orThrow } from '#server/kernel/or-throw'
import type { Secrets } from '#server/kernel/secrets'
import { AcmeError } from '#server/platform/acme/acme'
import { DnsProviderError } from '#server/platform/dns-providers/provider'
import { IngressError } from '#server/platform/ingress/ingress'
import type { Accounts } from './accounts.ts'
import type { Budget } from './budget.ts'
import { type ChainFacts, readIssued } from './chain.ts'
import type { Challenges, PlacedAnswer } from './challenges.ts'
import { type EdgeCertificates, keyContext } from './edge.ts'
import type { MakeKey } from './keys.ts'
import type { CertificatePorts } from './ports.ts'
import { type CertificateRepository, type CertificateRow, namesIn } from './repository.ts'

export const ISSUE = 'certificate.issue'
/** Steps that talk to an authority, of all certificates together. */
export const POOL = 'certificate'
export interface IssuePayload {
  certificate_id: string
}
export interface IssueState {
  order_url: string | null
  directory_url: string | null
  placed: PlacedAnswer[]
  chain: string | null
  /** Seconds that the authority asked to wait for. */
  retry_after_s: number | null
}
export interface IssueParts {
  clock: Clock
  repository: CertificateRepository
  secrets: Secrets
  makeKey: MakeKey
  accounts: Accounts
  budget: Budget
  challenges: Challenges
  edge: EdgeCertificates
  ports: CertificatePorts
  requireVerified(project_id: string, names: readonly string[]): void
  installed(row: CertificateRow, facts: ChainFacts, key: string, directory_url: string): void
  ended(row: CertificateRow, outcome: Outcome, retry_after_s: number | null): void
}
type Context = StepContext<IssuePayload, IssueState>
const CHALLENGE_TIMEOUT_MS = 540_000

/**
 * Authorities are never asked again within an attempt: the next one comes after the back-off. Only what is
 * ours is tried at once.
 */
function classify(error: unknown): Verdict {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof AcmeError)
    return {
      kind: 'user',
      code: `acme_${error.code}`,
      message,
      hint:
        error.code === 'refused'
          ? 'Mend what the authority says; it is tried again by itself.'
          : 'It will be tried again automatically.',
      log: [],
    }
  if (error instanceof DnsProviderError)
    return {
      kind: 'user',
      code: 'dns_provider',
      message,
      hint: 'Look at the DNS provider in the settings.',
      log: [],
    }
  if (error instanceof IngressError)
    return {
      kind: 'wait',
      code: 'edge_unavailable',
      message,
      hint: 'Make sure that the edge runs.',
      log: [],
    }
  return {
    kind: 'system',
    code: 'internal',
    message: 'An internal fault stopped this work.',
    hint: 'Look at the log of the server.',
    log: [],
  }
}

/**
 * Obtains a certificate: order, challenges, finalise, install, deliver. Each step goes on where a crash left
 * it.
 */
export function issueJob(parts: IssueParts) {
  const { repository, secrets, makeKey, accounts, budget, challenges, edge, ports } = parts
  const rowOf = (id: string): CertificateRow =>
    orThrow(repository.find(id), () => new Fatal('gone', 'The certificate was deleted.'))

  /** Keeps how long the authority asked to wait, for the time of the next attempt. */
  async function asking<T>({ state, save }: Context, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof AcmeError && error.retry_after_s !== undefined) {
        state.retry_after_s = error.retry_after_s
        save()
      }
      throw error
    }
  }
  async function keyFor(row: CertificateRow, signal?: AbortSignal): Promise<string> {
    if (row.next_key) return secrets.open(row.next_key, keyContext('next_key', row.id))
    const key = await makeKey(row.project_id, row.key_type, signal)
    repository.setNextKey(row.id, secrets.seal(key, keyContext('next_key', row.id)))
    return key
  }

  /** Asks the budget again: many attempts may have begun while none of them had asked the authority yet. */
  function requireBudget(row: CertificateRow, stage: 'by_itself' | 'ordered'): void {
    const wait = budget.waitFor(row, stage)
    if (!wait) return
    const retry_after_s = Math.max(1, Math.ceil((Date.parse(wait.until) - parts.clock.now()) / 1000))
    throw new AcmeError('rate_limited', wait.reason, { retry_after_s })
  }

  async function order(context: Context): Promise<void> {
    const row = rowOf(context.payload.certificate_id)
    const names = namesIn(row)
    parts.requireVerified(row.project_id, names)
    if (names.some((name) => name.startsWith('*.')) && !ports.dnsProvider())
      throw new Fatal(
        'dns_provider_missing',
        `A wildcard such as ${names.find((name) => name.startsWith('*.'))} is proven by a TXT record, and no DNS provider is set up.`,
        'An administrator can set one up in the settings, under DNS provider.',
      )
    await keyFor(row, context.signal)
    context.state.directory_url = ports.rules().directory_url
    await asking(context, () =>
      accounts.with(async (session) => {
        if (context.state.order_url === null) {
          requireBudget(row, 'by_itself')
          const placed = await session.order(names, context.signal)
          budget.record('order', row)
          context.state.order_url = placed.url
          context.save()
        }
      }, context.signal),
    )
  }

  async function challenge(context: Context): Promise<void> {
    const { state, save, signal, payload } = context
    const row = rowOf(payload.certificate_id)
    await asking(context, async () => {
      const session = accounts.sessionAt(state.directory_url!) ?? (await accounts.session(signal))
      const { authorizations } = await session.read(state.order_url!, signal)
      const open = authorizations.filter(({ status }) => status === 'pending').map(({ hostname }) => hostname)
      try {
        await challenges.answer(
          session,
          authorizations,
          row.challenge ?? ports.rules().challenge,
          state.placed,
          save,
          signal,
        )
        await session.settle(state.order_url!, 'ready', signal)
      } catch (error) {
        if (error instanceof AcmeError && error.code === 'refused')
          budget.record('failed_validation', row, open)
        throw error
      }
      await challenges.remove(state.placed, save)
    })
  }

  async function finalise(context: Context): Promise<void> {
    const { state, signal, payload } = context
    const row = rowOf(payload.certificate_id)
    const [names, key] = [namesIn(row), await keyFor(row)]
    await asking(context, async () => {
      requireBudget(row, 'ordered')
      const session = accounts.sessionAt(state.directory_url!) ?? (await accounts.session(signal))
      await session.finalise(state.order_url!, key, names, signal)
      await session.settle(state.order_url!, 'valid', signal)
      state.chain = await session.download(state.order_url!, signal)
    })
    if (!readIssued(state.chain!, key, names))
      throw new Fatal(
        'wrong_certificate',
        'The certificate authority sent a certificate that cannot be served, or that does not fit the key and the names that it was asked for.',
      )
    budget.record('issued', row)
  }

  async function install({ state, payload }: Context): Promise<void> {
    const row = rowOf(payload.certificate_id)
    // A crash right after the commit: the key has moved already.
    if (row.next_key === null) return
    const key = await keyFor(row)
    parts.installed(row, readIssued(state.chain!, key, namesIn(row))!, key, state.directory_url!)
  }

  return defineJob<IssuePayload, IssueState>({
    kind: ISSUE,
    initial: () => ({
      order_url: null,
      directory_url: null,
      placed: [],
      chain: null,
      retry_after_s: null,
    }),
    classify,
    steps: [
      { name: 'order', pool: POOL, run: order },
      {
        name: 'challenge',
        pool: POOL,
        timeout_ms: CHALLENGE_TIMEOUT_MS,
        run: challenge,
        undo: ({ state, save }) => challenges.remove(state.placed, save),
      },
      { name: 'finalise', pool: POOL, run: finalise },
      { name: 'install', run: install },
      // Whatever the edge says now, the certificate is there: it is handed over again by the next pass.
      { name: 'deliver', irrevocable: true, run: () => edge.sync() },
    ],
    onEnd(job: JobRow, outcome, state) {
      const row = repository.find((JSON.parse(job.payload) as IssuePayload).certificate_id)
      if (row) parts.ended(row, outcome, state.retry_after_s)
    },
  })
}
