import type { Connection } from './connection.ts'

interface UserFacts {
  SecurityOptions?: string[] | null
  DockerRootDir?: string
}

/**
 * The number that root of a container has on the engine's machine: 0, or the first of a range of its own where the
 * engine was told to give containers users of their own (`userns-remap`). Such an engine keeps its data in a folder
 * named after the range, and its archive calls read these numbers.
 */
export async function rootUser(connection: Connection, signal?: AbortSignal): Promise<number> {
  const { SecurityOptions, DockerRootDir } = await connection.call<UserFacts>({ path: '/info', signal })
  if (!SecurityOptions?.some((option) => /^name=userns\b/.test(option))) return 0
  return Number(/\/(\d+)\.\d+$/.exec(DockerRootDir ?? '')?.[1] ?? 0)
}
