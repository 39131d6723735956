import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import type { Connection } from './connection.ts'
import { EngineError, type Labels } from './engine.ts'
import type { LabelScope } from './labels.ts'
import { isOfPreview } from './network-name.ts'
import { formatAddress, overlaps, parseAddress, parseRange, type Range, rangeSize } from './subnets.ts'
import { createTurn } from './turn.ts'

/** Where all networks lie. */
const POOL: Range = { first: parseAddress('10.200.0.0'), prefix: 13 }
/** The range in CIDR notation. */
export const PROJECT_NETWORKS = `${formatAddress(POOL.first)}/${POOL.prefix}`
/** A part of it, in slots of one size. */
interface Slots {
  first: number
  prefix: number
  count: number
}
/** 448 networks of projects, of 1,022 addresses each. */
const PROJECTS: Slots = { first: POOL.first, prefix: 22, count: 448 }
/** 512 networks of previews, of 126 each: eleven apps may have more previews than there is room for projects. */
const PREVIEWS: Slots = { first: parseAddress('10.207.0.0'), prefix: 25, count: 512 }

/** Whether a range can be that of a network of a project. */
export const isOfProject = (range: Range): boolean =>
  Number.isInteger(range.first) &&
  range.prefix === PROJECTS.prefix &&
  overlaps(range, POOL) &&
  range.first < PREVIEWS.first
/** A single other server has no more of them: the rest is for this one and for others. */
export const MOST_ELSEWHERE = PROJECTS.count / 2

export interface NetworkInfo {
  Id: string
  Name: string
  Created: string
  /** `swarm` for one over several servers, which is the manager's. */
  Scope?: string
  Labels: Record<string, string> | null
  IPAM: { Config: { Subnet?: string; IPRange?: string; Gateway?: string }[] | null }
}

/** Ranges that this host already routes somewhere; empty where it cannot be known. */
export function hostRanges(): Range[] {
  const ranges = Object.values(networkInterfaces())
    .flat()
    .flatMap((entry) => (entry?.family === 'IPv4' && entry.cidr ? [parseRange(entry.cidr)] : []))
  try {
    for (const line of readFileSync('/proc/net/route', 'utf8').split('\n').slice(1)) {
      const [, destination, , , , , , mask] = line.split('\t')
      if (!destination || !mask || /^0+$/.test(mask)) continue
      const first = Buffer.from(destination, 'hex').readUInt32LE()
      ranges.push({
        first,
        prefix: 32 - Math.log2(2 ** 32 - Buffer.from(mask, 'hex').readUInt32LE()),
      })
    }
  } catch {
    // Not Linux: the interfaces alone must do.
  }
  return ranges
}

/**
 * Slots to try for a network, starting at one that its name decides, so that a network that is made
 * anew gets the same subnet.
 */
export function* candidateSubnets(name: string, taken: Range[]): Generator<Range> {
  const { first, prefix, count } = isOfPreview(name) ? PREVIEWS : PROJECTS
  const start = createHash('sha256').update(name).digest().readUInt32BE() % count
  for (let step = 0; step < count; step++) {
    const slot: Range = { first: first + ((start + step) % count) * rangeSize({ first, prefix }), prefix }
    if (!taken.some((range) => overlaps(range, slot))) yield slot
  }
}

/** Creates, finds and removes the bridge networks of projects. */
export function createNetworks(
  connection: Connection,
  scope: LabelScope,
  takenElsewhere: () => Promise<readonly Range[]> = async () => [],
) {
  const list = (filters: Record<string, string[]> = {}) =>
    connection.call<NetworkInfo[]>({
      path: '/networks',
      query: { filters: JSON.stringify(filters) },
    })
  /** All networks of exactly that name, oldest first: engines do not enforce unique names. */
  async function named(name: string): Promise<NetworkInfo[]> {
    const found = (await list({ name: [name] })).filter((network) => network.Name === name)
    return found.sort((a, b) => a.Created.localeCompare(b.Created) || a.Id.localeCompare(b.Id))
  }
  const remove = (id: string) =>
    connection.call<void>({
      method: 'DELETE',
      path: `/networks/${encodeURIComponent(id)}`,
      accept: [404],
    })

  async function create(name: string, labels: Labels, slot: Range): Promise<void> {
    const { first: base, prefix } = slot
    await connection.call({
      method: 'POST',
      path: '/networks/create',
      body: {
        Name: name,
        CheckDuplicate: true,
        Driver: 'bridge',
        Labels: scope.stored(labels),
        IPAM: {
          Driver: 'default',
          // The lower half is handed out by the engine, the upper half by us: fixed addresses never
          // meet dynamic ones.
          Config: [
            {
              Subnet: `${formatAddress(base)}/${prefix}`,
              IPRange: `${formatAddress(base)}/${prefix + 1}`,
              Gateway: formatAddress(base + 1),
            },
          ],
        },
      },
    })
  }

  const inTurn = createTurn()
  async function ensure(name: string, labels: Labels): Promise<void> {
    if ((await named(name)).length > 0) return
    // Callers at once would each make one, and a container of the others' could not tell them apart
    // by name.
    await inTurn(() => ensureAlone(name, labels))
  }

  async function ensureAlone(name: string, labels: Labels): Promise<void> {
    if ((await named(name)).length > 0) return
    const networks = await list()
    const taken = [
      ...networks.flatMap(subnetsOf),
      ...(connection.local ? hostRanges() : []),
      ...(await takenElsewhere()),
    ]
    for (const slot of candidateSubnets(name, taken)) {
      try {
        await create(name, labels, slot)
      } catch (error) {
        if (!(error instanceof EngineError)) throw error
        if (error.code === 'conflict') break
        if (/overlap|is in use|already exists for network/i.test(error.message)) continue
        throw error
      }
      break
    }
    const [kept, ...doubles] = await named(name)
    if (!kept)
      throw new EngineError(
        'failed',
        `There is no free subnet for the network of another ${isOfPreview(name) ? 'preview' : 'project'}.`,
        'Remove projects, previews or networks that are no longer used.',
      )
    // Another process, as of an upgrade, can have created one as well; both keep the oldest.
    for (const double of doubles) await remove(double.Id)
  }

  return {
    ensure,
    named,
    async remove(name: string): Promise<void> {
      for (const network of await named(name)) await remove(network.Id)
    },
    async removeLabelled(labels: Labels): Promise<void> {
      for (const network of await list({ label: scope.filter(labels) }))
        if (scope.owns(network.Labels) && network.Scope !== 'swarm') await remove(network.Id)
    },
  }
}
export type Networks = ReturnType<typeof createNetworks>

export function subnetsOf(network: NetworkInfo): Range[] {
  return (network.IPAM.Config ?? []).flatMap(({ Subnet }) =>
    Subnet?.includes('.') ? [parseRange(Subnet)] : [],
  )
}
