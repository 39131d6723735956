import { ApiError, invalid } from '#server/kernel/errors'
import type { Verdict } from '#server/kernel/jobs/definition'
import { classifyAddress, isSameAddress } from '#server/platform/outbound/addresses'
import { type Cluster, ClusterError, type NodeFacts, type NodeTarget } from '#server/platform/cluster/cluster'
import { EngineError } from '#server/platform/engine/engine'
import { unsuitedBy } from './checks.ts'
import type { NodePorts } from './context.ts'

/** Somebody waits for a look at a server. */
const LOOK_MS = 20_000

/** The field of the request that a failure is about. */
const FIELDS: Readonly<Record<ClusterError['code'], string>> = {
  unreachable: 'address',
  host_key: 'host_key',
  denied: 'ssh_key_id',
  not_root: 'user',
  unsuited: 'address',
  failed: 'address',
}

/** A refusal that says of each field what is wrong with it. */
const refused = (message: string, details: { path: string; message: string }[]): ApiError =>
  new ApiError('CONFLICT', message, details)

const sentenceOf = ({ message, hint }: ClusterError): string => [message, hint].filter(Boolean).join(' ')

/**
 * What a login that failed is to whoever asked for it: 409, of a key that nobody approved with the key itself.
 * @param nameOf how the request calls a field.
 */
function loginRefused(
  error: unknown,
  approved: string | undefined,
  nameOf: (field: string) => string = (field) => field,
): unknown {
  if (!(error instanceof ClusterError)) return error
  const path = nameOf(FIELDS[error.code])
  if (error.code === 'host_key' && error.shown !== undefined)
    return refused(
      approved === undefined
        ? `The server shows the key ${error.shown}. Compare it with its own, which \`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub\` prints there, then send it as host_key.`
        : `The server shows the key ${error.shown}, not the approved one, ${approved}. Nothing was sent to it.`,
      [{ path, message: error.shown }],
    )
  const message = sentenceOf(error)
  return refused(message, [{ path, message }])
}

/** Private half of the key to log in with; throws 422 under this path where there is none. */
export function loginKey(ports: Pick<NodePorts, 'privateKey'>, ssh_key_id: string, path: string): string {
  try {
    return ports.privateKey(ssh_key_id)
  } catch {
    throw invalid(path, 'is no key of this installation with a private half.')
  }
}

/** Looks at a server for somebody who waits; throws 409 with what is wrong with the login. */
export const lookAt = (
  cluster: Cluster,
  target: NodeTarget,
  nameOf?: (field: string) => string,
): Promise<NodeFacts> =>
  cluster
    .inspect(target, AbortSignal.timeout(LOOK_MS))
    .catch((error: unknown) => Promise.reject(loginRefused(error, target.host_key, nameOf)))

/** Throws a refusal with all that speaks against a server. */
export function requireSuited(facts: NodeFacts, about: Parameters<typeof unsuitedBy>[1]): void {
  const against = unsuitedBy(facts, about)
  if (against.length > 0)
    throw refused(`The server cannot join. ${against.map(({ message }) => message).join(' ')}`, against)
}

/** Throws 422 for an address that cannot be another server. */
export function requireOther(address: string, own: readonly string[]): void {
  const is_own = address === 'localhost' || own.some((one) => isSameAddress(one, address))
  if (is_own) throw invalid('address', 'is this server itself.')
  const is_literal = /^[0-9.]+$/.test(address) || address.includes(':')
  if (!is_literal) return
  if (/^(127\.|::1$)/.test(address)) throw invalid('address', 'is this server itself.')
  if (classifyAddress(address) === 'unusual')
    throw invalid('address', 'is no address that another server can have.')
}

/** What an error of the cluster means for a job: a server that does not answer is tried again. */
export function clusterVerdict(error: unknown): Verdict {
  if (error instanceof ClusterError)
    return {
      kind: error.code === 'unreachable' ? 'system' : 'user',
      code: `node_${error.code}`,
      message: error.message,
      hint: error.hint ?? null,
      log: [],
    }
  if (error instanceof ApiError)
    return { kind: 'user', code: 'node_unsuited', message: error.message, hint: null, log: [] }
  if (error instanceof EngineError)
    return {
      kind: 'system',
      code: 'node_failed',
      message: error.message,
      hint: 'Look at the engine of that server, and at the one of this server, then try again.',
      log: [],
    }
  return {
    kind: 'system',
    code: 'internal',
    message: 'An internal fault stopped this step.',
    hint: 'Look at the log of Portreeve, then try again.',
    log: [],
  }
}
