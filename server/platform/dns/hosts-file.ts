import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'

/** The names that the operator of a machine wrote down, which come before DNS. */
export interface HostsFile {
  /** Addresses of a name in the order of the file; undefined for a name that it does not hold. */
  find(name: string): Promise<readonly string[] | undefined>
}

/** Reads `address name alias … # comment`; a line without an address says nothing, as for the system. */
function readHosts(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (!address || !isIP(address)) continue
    for (const name of names) {
      const key = name.toLowerCase().replace(/\.$/, '')
      const addresses = found.get(key) ?? []
      if (!addresses.includes(address)) found.set(key, [...addresses, address])
    }
  }
  return found
}

/** Looks into the file at each question, and reads it again once it has changed. A missing one is empty. */
export function createHostsFile(path: string): HostsFile {
  let read: { version: string; names: Map<string, string[]> } | undefined
  return {
    async find(name) {
      const version = await stat(path).then(
        ({ ino, size, mtimeMs }) => `${ino} ${size} ${mtimeMs}`,
        () => 'missing',
      )
      if (read?.version !== version)
        read = { version, names: readHosts(await readFile(path, 'utf8').catch(() => '')) }
      return read.names.get(name.toLowerCase())
    },
  }
}
