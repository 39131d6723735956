import { timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { compileNetworks } from '#server/kernel/networks'
import type { Secrets } from '#server/kernel/secrets'

/**
 * What the installation's own edge sends to show that it is the edge. The same for as long as the master key
 * is.
 */
export const edgeProof = (secrets: Pick<Secrets, 'derive'>): string => secrets.derive('edge').toString('hex')

/**
 * What forwarding headers say, as sent. `edge_proof` is a secret that only this installation's own edge
 * knows.
 */
export interface ForwardingHeaders {
  forwarded_for?: string
  forwarded_proto?: string
  real_ip?: string
  edge_proof?: string
}

const plain = (text: string): string => {
  const inner = text.trim().replace(/^"|"$/g, '')
  const unbracketed =
    /^\[([^\]]+)\](:\d+)?$/.exec(inner)?.[1] ??
    (/^\d+\.\d+\.\d+\.\d+:\d+$/.test(inner) ? inner.slice(0, inner.lastIndexOf(':')) : inner)
  return unbracketed.replace(/^::ffff:(?=\d+\.)/i, '')
}

function isProof(given: string | undefined, expected: string): boolean {
  const [a, b] = [Buffer.from(given ?? ''), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/**
 * Address and scheme of the client. The installation's own edge is believed because it knows the secret, not
 * because it is on this machine: others are, too. It has judged the proxies in front of it already.
 * Forwarding headers count only when the peer is a trusted proxy; the list is read from its end, past trusted
 * proxies, to the first address that none of them vouches for: everything before it may be invented.
 */
export function createClientAddress(
  trusted_proxies: readonly string[],
  edge_proof: string,
): (peer: string, headers: ForwardingHeaders) => { address: string; secure: boolean; by_edge?: true } {
  const trusted = compileNetworks(trusted_proxies)
  return (peer, { forwarded_for, forwarded_proto, real_ip, edge_proof: given }) => {
    if (isProof(given, edge_proof))
      return {
        address: isIP(real_ip ?? '') === 0 ? peer : plain(real_ip ?? ''),
        secure: forwarded_proto === 'https',
        by_edge: true,
      }
    if (!trusted(peer)) return { address: peer, secure: false }
    const secure = forwarded_proto?.split(',').at(-1)?.trim().toLowerCase() === 'https'
    let address = peer
    for (const hop of (forwarded_for ?? '').split(',').map(plain).reverse()) {
      if (isIP(hop) === 0) break
      address = hop
      if (!trusted(hop)) break
    }
    return { address, secure }
  }
}
