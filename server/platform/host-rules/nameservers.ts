import { readFile } from 'node:fs/promises'

const text = (path: string) => readFile(path, 'utf8').catch(() => '')

/** Name servers that the engine's own settings give to containers. */
async function engineNameservers(): Promise<string[]> {
  try {
    const { dns } = JSON.parse((await text('/etc/docker/daemon.json')) || '{}') as { dns?: unknown }
    return Array.isArray(dns) ? dns.filter((one): one is string => typeof one === 'string') : []
  } catch {
    return []
  }
}

/** Where a machine says whom it asks for names. */
export const RESOLVER_FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'] as const
/** Name servers that such a file names. */
export const nameserversIn = (file: string): string[] =>
  [...file.matchAll(/^\s*nameserver\s+([0-9a-fA-F.:]+)\s*$/gm)].map(([, address]) => address!)

/** Name servers of this machine, which the engine and containers ask. */
export async function readNameservers(): Promise<string[]> {
  const texts = await Promise.all(RESOLVER_FILES.map(text))
  return [...new Set([...texts.flatMap(nameserversIn), ...(await engineNameservers())])]
    .filter((address) => /^[0-9a-fA-F.:]+$/.test(address))
    .sort()
}
