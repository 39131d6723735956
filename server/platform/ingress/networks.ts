import { isIPv4 } from 'node:net'

/**
 * A network as beginnings of addresses in hexadecimal, so that one look-up of the longest beginning tells
 * whether an address is in it. A digit stands for four bits; a network that ends within a digit has up to
 * eight beginnings. `4` or `6` in front keeps the families apart.
 */
export function networkKeys(network: string): string[] {
  const [address = '', bits_text] = network.split('/')
  const digits = isIPv4(address) ? ipv4Digits(address) : ipv6Digits(address)
  const bits = bits_text === undefined ? digits.length * 4 : Number(bits_text)
  const family = isIPv4(address) ? '4' : '6'
  const [whole, within] = [Math.floor(bits / 4), bits % 4]
  if (within === 0) return [family + digits.slice(0, whole)]
  const step = 2 ** (4 - within)
  const first = Math.floor(Number.parseInt(digits[whole] ?? '0', 16) / step) * step
  return Array.from(
    { length: step },
    (_, offset) => family + digits.slice(0, whole) + (first + offset).toString(16).toUpperCase(),
  )
}

const ipv4Digits = (address: string): string =>
  address
    .split('.')
    .map((part) => Number(part).toString(16).padStart(2, '0'))
    .join('')
    .toUpperCase()

function ipv6Digits(address: string): string {
  const tail = /[\d.]+$/.exec(address)?.[0] ?? ''
  const text = tail.includes('.')
    ? address.replace(tail, ipv4Digits(tail).replace(/^(.{4})/, '$1:'))
    : address
  const [left = '', right] = text.split('::')
  const groups = (part: string) => part.split(':').filter(Boolean)
  const missing = right === undefined ? 0 : 8 - groups(left).length - groups(right).length
  return [...groups(left), ...Array.from({ length: missing }, () => '0'), ...groups(right ?? '')]
    .map((group) => group.padStart(4, '0'))
    .join('')
    .toUpperCase()
}
