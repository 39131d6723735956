import { BlockList, isIP } from 'node:net'

/** What forwarding headers say, as sent. */
export interface ForwardingHeaders { forwarded_for?: string; forwarded_proto?: string }

const plain = (text: string): string => {
  const inner = text.trim().replace(/^"|"$/g, '')
  const unbracketed = /^\[([^\]]+)\](:\d+)?$/.exec(inner)?.[1] ?? (/^\d+\.\d+\.\d+\.\d+:\d+$/.test(inner) ? inner.slice(0, inner.lastIndexOf(':')) : inner)
  return unbracketed.replace(/^::ffff:(?=\d+\.)/i, '')
}

function trustedList(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family)
  }
  return (address) => {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/**
 * Address and scheme of the client. Forwarding headers count only when the peer is a trusted proxy; the list is read from its
 * end, past trusted proxies, to the first address that none of them vouches for: everything before it may be invented.
 */
export function createClientAddress(trusted_proxies: readonly string[]): (peer: string, headers: ForwardingHeaders) => { address: string; secure: boolean } {
  const trusted = trustedList(trusted_proxies)
  return (peer, { forwarded_for, forwarded_proto }) => {
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
