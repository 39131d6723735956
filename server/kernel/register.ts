import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What other processes on this machine announce about something that all of them share. */
export interface Register<T> {
  /** What others announced; entries of processes that died are removed by whoever finds them. */
  others(): T[]
  /** Announces something; the answer takes it back. */
  enter(value: T): () => void
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
 * A folder with one file for each entry. Where the folder cannot be used, every process works as if it were
 * alone.
 */
export function createRegister<T>(directory: string): Register<T> {
  const own = randomUUID()
  let count = 0
  return {
    others() {
      try {
        return readdirSync(directory).flatMap((name) => {
          const [, pid, instance] = NAME.exec(name) ?? []
          if (pid === undefined || instance === own) return []
          if (isAlive(Number(pid))) return [JSON.parse(readFileSync(join(directory, name), 'utf8')) as T]
          rmSync(join(directory, name), { force: true })
          return []
        })
      } catch {
        return []
      }
    },
    enter(value) {
      const path = join(directory, `${process.pid}.${own}.${(count += 1)}`)
      try {
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        writeFileSync(path, JSON.stringify(value), { mode: 0o600 })
      } catch {
        return () => {}
      }
      return () => rmSync(path, { force: true })
    },
  }
}
