import type { Connection } from '../connection.ts'

/** What is mounted in a container, as the engine tells it; volumes have names, also those that an image asks for. */
export interface MountPoint {
  Type: string
  Name?: string
  Destination: string
  RW?: boolean
}
interface User {
  Id: string
  Mounts?: MountPoint[] | null
}
interface Wanted {
  names: readonly string[]
  /** Whether containers count that do not run, but may be started. */
  all: boolean
  /** A container that does not count. */
  except?: string
  signal: AbortSignal | undefined
}

/** Which of these volumes containers can write to. */
export async function writtenVolumes(
  connection: Connection,
  { names, all, except, signal }: Wanted,
): Promise<ReadonlySet<string>> {
  const users = await connection.call<User[] | undefined>({
    path: '/containers/json',
    query: { ...(all ? { all } : {}), filters: JSON.stringify({ volume: names }) },
    keep: (entry) => ({ Id: (entry as User).Id, Mounts: (entry as User).Mounts }),
    signal,
  })
  const mounts = (users ?? []).filter(({ Id }) => Id !== except).flatMap(({ Mounts }) => Mounts ?? [])
  return new Set(mounts.filter(({ RW }) => RW !== false).flatMap(({ Name }) => Name ?? []))
}
