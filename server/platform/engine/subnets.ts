/** An IPv4 range: its first address as a number, and its prefix length. */
export interface Range {
  first: number
  prefix: number
}

export function parseAddress(text: string): number {
  return text.split('.').reduce((number, part) => number * 256 + Number(part), 0)
}

export function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')
}

/** `10.1.2.3/24` as the range it lies in. */
export function parseRange(text: string): Range {
  const [address = '', prefix = '32'] = text.split('/')
  const size = 2 ** (32 - Number(prefix))
  return { first: Math.floor(parseAddress(address) / size) * size, prefix: Number(prefix) }
}

export const rangeSize = ({ prefix }: Range): number => 2 ** (32 - prefix)

export function overlaps(a: Range, b: Range): boolean {
  return a.first < b.first + rangeSize(b) && b.first < a.first + rangeSize(a)
}
