/** An address as a number, and of how many bits; undefined when it is none. */
function numberOf(address: string): { value: bigint; bits: number } | undefined {
  const text = address.trim().replace(/^::ffff:(?=\d+\.)/i, '')
  if (text.includes('.')) {
    const parts = text.split('.').map(Number)
    const is_valid =
      parts.length === 4 && parts.every((part) => Number.isInteger(part) && part >= 0 && part < 256)
    return is_valid
      ? { value: parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n), bits: 32 }
      : undefined
  }
  const [head = '', tail] = text.split('::')
  const groups = (side: string | undefined) => (side ? side.split(':') : [])
  const [first, last] = [groups(head), groups(tail)]
  const left_out = 8 - first.length - last.length
  if (tail === undefined ? left_out !== 0 : left_out < 1) return undefined
  const all = [...first, ...Array.from({ length: left_out }, () => '0'), ...last]
  if (!all.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined
  return { value: all.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n), bits: 128 }
}

/** Whether an address is one of a list, or within one of its networks (`10.0.0.0/8`). What is neither fits nothing. */
export function isWithin(address: string, list: readonly string[]): boolean {
  const own = numberOf(address)
  return (
    own !== undefined &&
    list.some((entry) => {
      const [begin = '', length] = entry.split('/')
      const network = numberOf(begin)
      if (network?.bits !== own.bits || !/^\d{1,3}$/.test(length ?? '0')) return false
      const open = BigInt(own.bits - (length === undefined ? own.bits : Number(length)))
      return open >= 0n && own.value >> open === network.value >> open
    })
  )
}
