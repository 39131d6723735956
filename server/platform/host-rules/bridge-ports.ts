import type { Run } from '#server/kernel/process'

/** Keeps what runs on a bridge from all else that runs on it, whatever it sends and whoever it says it is. */
export interface BridgePorts {
  /**
   * Sets what is on the bridge apart, and from now on each port as soon as it is there. Idempotent; throws an error
   * that says why it cannot.
   * @param network a network namespace as a path, where the bridge is in another one than this process.
   */
  keepApart(bridge: string, network?: string): Promise<void>
  /** Ends the watch; what was set stays. */
  stop(): void
}

const TIMEOUT_MS = 20_000
/** As long as a timer may be; a watch that has ended is begun again by the next call. */
const WATCH_MS = 2 ** 31 - 1
const WATCH_OUTPUT_BYTES = 4096

/** A line of `ip -o -d link`: an interface, its master and whether it is set apart, where the line says that. */
function readLink(line: string): { name: string; bridge?: string; is_apart?: boolean } | undefined {
  const [, name, rest = ''] = /^\d+: ([^:@\s]+)\S*(.*)$/.exec(line) ?? []
  const bridge = /\smaster (\S+)/.exec(rest)?.[1]
  const apart = /\sisolated (on|off)\b/.exec(rest)?.[1]
  if (!name) return undefined
  return { name, ...(bridge ? { bridge } : {}), ...(apart ? { is_apart: apart === 'on' } : {}) }
}

/**
 * Ports that are isolated pass frames to the machine itself and to ports that are not, never to one another. So a
 * container can neither reach nor pose as its neighbour, whether or not the machine filters what a bridge passes on.
 */
export function createBridgePorts(run: Run): BridgePorts {
  let watched: { place: string; end: AbortController } | undefined

  const argv = (network: string | undefined, args: readonly string[]) => [
    ...(network === undefined ? [] : ['nsenter', `--net=${network}`]),
    'ip',
    '-o',
    '-d',
    ...args,
  ]
  async function ip(network: string | undefined, args: readonly string[]): Promise<string> {
    const result = await run(argv(network, args), { cwd: '/', timeout_ms: TIMEOUT_MS }).catch(
      (cause: unknown) => {
        throw new Error('ip is not installed', { cause })
      },
    )
    if (result.exit_code === 0) return result.stdout
    throw new Error(`ip says: ${result.stderr.trim().split('\n')[0] || `exit code ${result.exit_code}`}`)
  }
  async function isolate(network: string | undefined, name: string): Promise<void> {
    await ip(network, ['link', 'set', 'dev', name, 'type', 'bridge_slave', 'isolated', 'on']).catch(
      (error: unknown) => {
        // What it belonged to may have ended already.
        if (!/cannot find device|no such device/i.test(String(error))) throw error
      },
    )
  }
  function stop(): void {
    watched?.end.abort()
    watched = undefined
  }
  function watch(bridge: string, network: string | undefined): void {
    const place = `${network ?? ''} ${bridge}`
    if (watched?.place === place) return
    stop()
    const own = { place, end: new AbortController() }
    watched = own
    const onLine = (line: string, stream: 'stdout' | 'stderr'): void => {
      const link = stream === 'stdout' ? readLink(line) : undefined
      // What fails here is told by the next call.
      if (link?.bridge === bridge && link.is_apart === false) void isolate(network, link.name).catch(() => {})
    }
    const options = { cwd: '/', timeout_ms: WATCH_MS, max_output_bytes: WATCH_OUTPUT_BYTES, onLine }
    void run(argv(network, ['monitor', 'link']), { ...options, signal: own.end.signal })
      .catch(() => {})
      .finally(() => {
        if (watched === own) watched = undefined
      })
  }

  return {
    stop,
    async keepApart(bridge, network) {
      watch(bridge, network)
      const found = await ip(network, ['link', 'show', 'master', bridge]).catch((error: unknown) => {
        // The engine makes its bridge when it starts.
        if (/does not exist/i.test(String(error))) return ''
        throw error
      })
      for (const line of found.split('\n')) {
        const link = readLink(line)
        if (link && !link.is_apart) await isolate(network, link.name)
      }
    },
  }
}
