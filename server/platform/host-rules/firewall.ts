import { readlink } from 'node:fs/promises'
import type { Run } from '#server/kernel/process'
import { type Chains, createChains } from './chains.ts'
import { type EngineProcess, findEngine } from './engine-process.ts'

/** The packet filter of the network in which an engine works, and the engine's process. */
export interface Firewall {
  engine: EngineProcess
  chains: Chains
  /** The engine's network namespace as a path, where it is another one than that of this process. */
  network?: string
}

/** Opens the firewall beside the engine; throws an error that says why it cannot be used. */
export async function openFirewall(docker_host: string, run: Run): Promise<Firewall> {
  const socket = /^unix:\/\/(\/.*)$/.exec(docker_host)?.[1]
  if (socket === undefined) throw new Error('the engine is not on this machine')
  if (process.getuid?.() !== 0) throw new Error('Portreeve does not run as root')
  const engine = await findEngine(socket)
  if (!engine) throw new Error('the process of the engine cannot be seen from here')
  const is_here = (await readlink('/proc/self/ns/net')) === engine.network
  if (is_here) return { engine, chains: createChains(run) }
  const network = `/proc/${engine.pid}/ns/net`
  return { engine, chains: createChains(run, network), network }
}
