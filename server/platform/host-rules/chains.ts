import { existsSync } from 'node:fs'
import type { Run } from '#server/kernel/process'

/** Everything that Portreeve adds to a firewall begins with this, so that it can be told and removed. */
export const PREFIX = 'PTR-'

export interface Chain {
  family: 4 | 6
  /** At most 28 characters. */
  name: string
  /** The built-in chain from which it is entered, and which packets enter it. */
  parent: string
  match: readonly string[]
  /** What follows `-A <name>` in each rule. */
  rules: readonly string[]
}

/** The rules of a firewall cannot be read or set. */
export class FirewallError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FirewallError'
  }
}

const WAIT = ['-w', '10']
const TIMEOUT_MS = 20_000

/**
 * Chains of Portreeve in the packet filter, made and compared as wholes. `network` is a network
 * namespace as a path, for an engine in another one than this process.
 */
export function createChains(run: Run, network?: string) {
  const inside = network === undefined ? [] : ['nsenter', `--net=${network}`]
  const program = (family: 4 | 6, suffix = '') => `${family === 4 ? 'iptables' : 'ip6tables'}${suffix}`
  /** What the kernel made of each chain when it was last set, to tell a change by somebody else. */
  const known = new Map<string, string>()

  async function command(argv: readonly string[], stdin?: string): Promise<string> {
    const result = await run([...inside, ...argv], {
      cwd: '/',
      timeout_ms: TIMEOUT_MS,
      ...(stdin === undefined ? {} : { stdin }),
    }).catch((error: unknown) => {
      throw new FirewallError(`${argv[0]} is not installed`, { cause: error })
    })
    if (result.exit_code !== 0)
      throw new FirewallError(
        `${argv[0]} says: ${result.stderr.trim().split('\n')[0] || `exit code ${result.exit_code}`}`,
      )
    return result.stdout
  }
  const read = async (family: 4 | 6): Promise<string[]> =>
    (await command([program(family), ...WAIT, '-S'])).split('\n')
  const write = (family: 4 | 6, lines: readonly string[]) =>
    command(
      [program(family, '-restore'), ...WAIT, '--noflush'],
      `${['*filter', ...lines, 'COMMIT'].join('\n')}\n`,
    )

  const entering = (lines: readonly string[], name: string) =>
    lines.filter((line) => line.startsWith('-A ') && line.endsWith(` -j ${name}`))
  const inChain = (lines: readonly string[], name: string) =>
    lines.filter((line) => line.startsWith(`-A ${name} `)).join('\n')
  /** Rules of others that come first could let pass what ours refuse. */
  function isFirst(lines: readonly string[], parent: string, name: string): boolean {
    const rules = lines.filter((line) => line.startsWith(`-A ${parent} `))
    const others = rules.findIndex((line) => !/ -j PTR-\S+$/.test(line))
    return rules.slice(0, others < 0 ? undefined : others).some((line) => line.endsWith(` -j ${name}`))
  }

  return {
    /** Whether this machine speaks the family at all. */
    has: (family: 4 | 6): boolean => family === 4 || existsSync('/proc/net/if_inet6'),
    /** Sets a chain unless it is what it should be; answers whether anything was changed. */
    async ensure({ family, name, parent, match, rules }: Chain): Promise<boolean> {
      const lines = await read(family)
      const key = `${family} ${name}`
      const desired = [`${parent} ${match.join(' ')}`, ...rules].join('\n')
      const found = () => inChain(lines, name)
      const entered = entering(lines, name)
      if (known.get(key) === `${desired}\n${found()}` && entered.length === 1 && isFirst(lines, parent, name))
        return false
      await write(family, [
        `:${name} - [0:0]`,
        ...rules.map((rule) => `-A ${name} ${rule}`),
        ...entered.map((line) => line.replace(/^-A/, '-D')),
        `-I ${parent} 1 ${[...match, '-j', name].join(' ')}`,
      ])
      known.set(key, `${desired}\n${inChain(await read(family), name)}`)
      return true
    },
    /** Whether all packets of a chain get into another one. */
    leads: async (family: 4 | 6, parent: string, name: string): Promise<boolean> =>
      (await read(family)).includes(`-A ${parent} -j ${name}`),
    /** Names of Portreeve's chains that begin like this. */
    async names(family: 4 | 6, prefix: string): Promise<string[]> {
      return (await read(family)).flatMap((line) => {
        const name = /^-N (\S+)$/.exec(line)?.[1]
        return name?.startsWith(prefix) ? [name] : []
      })
    },
    /** Takes a chain and what leads to it away; a missing one is fine. */
    async remove(family: 4 | 6, name: string): Promise<void> {
      const lines = await read(family)
      known.delete(`${family} ${name}`)
      if (!lines.includes(`-N ${name}`)) return
      await write(family, [
        ...entering(lines, name).map((line) => line.replace(/^-A/, '-D')),
        `-F ${name}`,
        `-X ${name}`,
      ])
    },
  }
}
export type Chains = ReturnType<typeof createChains>
