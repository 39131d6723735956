import { readdir, readFile, readlink } from 'node:fs/promises'

/**
 * Who listens on a TCP port of this machine: a program's name, `another program` when Linux does not tell,
 * nothing when it is free.
 */
export async function findPortOwner(port: number): Promise<string | undefined> {
  const inodes = new Set<string>()
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const inode of listeners(await readFile(table, 'utf8').catch(() => ''), port)) inodes.add(inode)
  }
  if (inodes.size === 0) return undefined
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      if (!inodes.has(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? '')) continue
      const name = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()
      return name === '' ? 'another program' : `${name} (process ${pid})`
    }
  }
  return 'another program'
}

const LISTEN = '0A'

function listeners(table: string, port: number): string[] {
  const desired = port.toString(16).toUpperCase().padStart(4, '0')
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/)
      return state === LISTEN && local.endsWith(`:${desired}`) && inode ? [inode] : []
    })
}
