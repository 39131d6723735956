import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GroupLimits } from './cgroups.ts'

/**
 * What other processes on this machine build at the moment: the group that caps builds is one for all of
 * them.
 */
export interface BuildRegister {
  /** Limits of the builds of others that run now. */
  others(): GroupLimits[]
  /** Announces a build; the answer takes it back. */
  enter(limits: GroupLimits): () => void
}

const NAME = /^(\d+)\.([0-9a-f-]{36})\./

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * A folder with one file for each build. Entries of processes that died are removed by whoever finds them.
 * Where the folder cannot be used, every process builds as if it were alone.
 */
export function createBuildRegister(directory = '/run/portreeve/builds'): BuildRegister {
  const own = randomUUID()
  let count = 0
  return {
    others() {
      try {
        return readdirSync(directory).flatMap((name) => {
          const [, pid, instance] = NAME.exec(name) ?? []
          if (pid === undefined || instance === own) return []
          if (isAlive(Number(pid)))
            return [JSON.parse(readFileSync(join(directory, name), 'utf8')) as GroupLimits]
          rmSync(join(directory, name), { force: true })
          return []
        })
      } catch {
        return []
      }
    },
    enter(limits) {
      const path = join(directory, `${process.pid}.${own}.${(count += 1)}`)
      try {
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        writeFileSync(path, JSON.stringify(limits), { mode: 0o600 })
      } catch {
        return () => {}
      }
      return () => rmSync(path, { force: true })
    },
  }
}
