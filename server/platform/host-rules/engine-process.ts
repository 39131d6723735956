import { readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'

/** The process behind an engine's socket. */
export interface EngineProcess {
  pid: number
  /** When it started, in the kernel's ticks: tells it from a later process of the same number. */
  started: string
  /** Its group in the unified hierarchy, such as `/system.slice/docker.service`. */
  group: string
  /** Its network namespace as the kernel names it, `net:[…]`. */
  network: string
}

/** Programs that serve the engine's API; others may hold its socket too, such as the one that opened it. */
const ENGINES = new Set(['dockerd'])

const text = (path: string) => readFile(path, 'utf8').catch(() => '')

/** What the kernel tells of a process from its state on. */
async function statOf(pid: number): Promise<string[]> {
  // The name in parentheses may hold anything, also parentheses.
  return (await text(`/proc/${pid}/stat`)).split(')').at(-1)?.trim().split(' ') ?? []
}

/** The ticks at which a process started; empty when there is none. */
export const startOf = async (pid: number): Promise<string> => (await statOf(pid))[19] ?? ''

/** Another text whenever a process did something, or another one has its number. */
export async function workOf(pid: number): Promise<string> {
  const fields = await statOf(pid)
  return [fields[11], fields[12], fields[19]].join(' ')
}

/** The group of a process in the unified hierarchy; undefined without one. */
export const groupOf = async (pid: number): Promise<string | undefined> =>
  /^0::(\/.*)$/m.exec(await text(`/proc/${pid}/cgroup`))?.[1]

/** Inodes of the sockets that listen at a path, as a process sees them. */
async function inodesAt(pid: number, socket: string): Promise<Set<string>> {
  const real = await realpath(socket).catch(() => socket)
  // What was bound is no link, so its last name is the same wherever it is seen from. A machine has hundreds.
  const names = new Set([basename(socket), basename(real)])
  const found = (await text(`/proc/${pid}/net/unix`)).split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/)
    return fields[7] && names.has(basename(fields[7])) ? [{ inode: fields[6]!, path: fields[7] }] : []
  })
  const same = await Promise.all(
    found.map(async ({ path }) => path === socket || (await realpath(path).catch(() => path)) === real),
  )
  return new Set(found.filter((_, at) => same[at]).map(({ inode }) => inode))
}

async function holds(pid: number, inodes: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`
  for (const fd of await readdir(folder).catch(() => [])) {
    const target = await readlink(join(folder, fd)).catch(() => '')
    if (inodes.has(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? '')) return true
  }
  return false
}

/** Finds the engine that listens at a socket of this machine; undefined when it cannot be seen from here. */
export async function findEngine(socket: string): Promise<EngineProcess | undefined> {
  for (const name of await readdir('/proc').catch(() => [])) {
    const pid = Number(name)
    if (!Number.isInteger(pid) || !ENGINES.has((await text(`/proc/${pid}/comm`)).trim())) continue
    if (!(await holds(pid, await inodesAt(pid, socket)))) continue
    const [started, group, network] = await Promise.all([
      startOf(pid),
      groupOf(pid),
      readlink(`/proc/${pid}/ns/net`).catch(() => ''),
    ])
    if (started && group && network) return { pid, started, group, network }
  }
  return undefined
}

/** A search looks at all processes of the machine; what is not found is not looked for at each look. */
const SEARCH_MS = 10_000

export interface FollowOptions {
  docker_host: string
  /** How much work has begun so far: with each, an engine that was not there may be. */
  begun(): number
  /** Milliseconds of a clock that never goes back. */
  now(): number
  /** Default: looks through all that there are. */
  find?: typeof findEngine
}

/** Answers the process behind a socket of this machine at each call, also after the engine was started anew. */
export function followEngine({ docker_host, begun, now, find = findEngine }: FollowOptions) {
  const socket = /^unix:\/\/(\/.*)$/.exec(docker_host)?.[1]
  let engine: EngineProcess | undefined
  let searched: { at: number; begun: number } | undefined
  return async (): Promise<EngineProcess | undefined> => {
    if (socket === undefined) return undefined
    if (engine && (await startOf(engine.pid)) === engine.started) return engine
    engine = undefined
    if (searched && now() - searched.at < SEARCH_MS && searched.begun === begun()) return undefined
    searched = { at: now(), begun: begun() }
    engine = await find(socket)
    return engine
  }
}

/** Programs that a process has started, with their arguments, each with a NUL behind it. */
export async function childrenOf(pid: number): Promise<{ pid: number; command: string }[]> {
  const found: { pid: number; command: string }[] = []
  for (const thread of await readdir(`/proc/${pid}/task`).catch(() => []))
    for (const child of (await text(`/proc/${pid}/task/${thread}/children`)).split(' ').filter(Boolean))
      found.push({ pid: Number(child), command: await text(`/proc/${child}/cmdline`) })
  return found
}

/** Bytes that a process has for itself in memory; undefined where there is no such process. */
export async function ownMemory(pid: number): Promise<number | undefined> {
  const kib = /^RssAnon:\s+(\d+) kB$/m.exec(await text(`/proc/${pid}/status`))?.[1]
  return kib === undefined ? undefined : Number(kib) * 1024
}

export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** Where the unified hierarchy is mounted: alone, or beside those of version 1. */
export async function unifiedRoot(): Promise<string | undefined> {
  const line = (await text('/proc/self/mounts')).split('\n').find((one) => one.split(' ')[2] === 'cgroup2')
  return line?.split(' ')[1]
}
