import { setTimeout as pause } from 'node:timers/promises'
import type { Connection } from '#server/platform/engine/connection'
import { PREFIX } from '#server/platform/host-rules/chains'
import { output } from './remote-run.ts'
import { ClusterError, type Member } from './cluster.ts'
import type { Link } from './link.ts'
import { setLiveRestore, wasTurnedOff } from './live-restore.ts'
import type { Members } from './members.ts'
import { ENGINE_PID_FILE, type Session } from './session.ts'
import { createSwarm, leaveWith, swarmState } from './swarm.ts'
import { addressTowards } from './this-server.ts'
import { removeEnd } from './tunnel.ts'

const SETTLE_MS = 10_000
const PAUSE_MS = 200
/** One that is given up gets so long to be emptied. */
const CLEAR_MS = 60_000

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + SETTLE_MS
  while (!(await holds())) {
    if (performance.now() > end) throw new ClusterError('failed', `${what} did not happen in time.`)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

/** Servers come into the cluster and leave it. */
export function createMembership(members: Members, installation: string) {
  const swarm = createSwarm(members.local, installation)

  const pidOf = async ({ run }: Session): Promise<number> =>
    Number((await output(run, ['cat', ENGINE_PID_FILE])).trim())

  /** Turns live-restore off; answers whether it was on. */
  async function endLiveRestore(
    engine: Connection,
    turn: (is_on: boolean) => Promise<void>,
  ): Promise<boolean> {
    if (!(await swarmState(engine)).live_restore) return false
    await turn(false)
    await until('Turning live-restore off', async () => !(await swarmState(engine)).live_restore)
    return true
  }

  async function withLink<T>(member: Member, work: (link: Link) => Promise<T>): Promise<T> {
    const known = members.list().find((link) => link.member.id === member.id)
    const link = known ?? members.open(member)
    try {
      return await work(link)
    } finally {
      if (link !== known) link.close()
    }
  }

  async function join(link: Link): Promise<void> {
    const session = await link.session()
    if (!session.is_root)
      throw new ClusterError('not_root', `The login at ${link.member.target.address} may not become root.`, {
        hint: 'Log in as root, or let the user call sudo without a password.',
      })
    const here = await members.thisServer()
    const manager_address = await addressTowards(here, session.address)
    if (!(await swarm.isOurs())) {
      const kept = await endLiveRestore(members.local, (is_on) => setLiveRestore(here.run, here.pid, is_on))
      await swarm.init(manager_address, kept)
    }
    if (await swarm.isAnother(link.connection, link.member.id))
      throw new ClusterError('unsuited', 'The server is part of the cluster already, by another address.')
    await members.welcome(link, async () => {
      await members.furnish(link, session)
      const pid = await pidOf(session)
      const kept = await endLiveRestore(link.connection, (is_on) => setLiveRestore(session.run, pid, is_on))
      await swarm.join(
        link.connection,
        { id: link.member.id, address: session.address, kept_running: kept },
        manager_address,
      )
    })
  }

  /** Takes from a server what Portreeve brought to it. */
  async function clear(link: Link, session: Session): Promise<void> {
    const { engine, connection } = link
    const images = new Set((await engine.instances({})).map(({ image }) => image))
    for (const { id } of await engine.listImages({})) images.add(id)
    await engine.removeLabelled({})
    for (const image of images) await engine.removeImage(image)
    const pid = await pidOf(session)
    const kept = (await swarm.keptRunning(link.member.id)) || (await wasTurnedOff(session.run, pid))
    await leaveWith(connection)
    await removeEnd(session)
    for (const family of [4, 6] as const) {
      if (!session.chains.has(family)) continue
      for (const name of await session.chains.names(family, PREFIX)) await session.chains.remove(family, name)
    }
    if (kept) await setLiveRestore(session.run, pid, true)
  }

  /** One that cannot be logged in to is left as it is. */
  async function empty(link: Link): Promise<void> {
    const session = await link.session().catch((error: unknown) => {
      if (error instanceof ClusterError) return undefined
      throw error
    })
    // Whatever else names a member, as a second address of it does, must not take it out.
    if (session && !(await swarm.isAnother(link.connection, link.member.id))) await clear(link, session)
  }

  /** Takes from this server what only a cluster needs. */
  async function dissolve(): Promise<void> {
    const here = await members.thisServer()
    const kept = (await swarm.keptRunningHere()) || (await wasTurnedOff(here.run, here.pid))
    await members.shared.removeAll()
    await leaveWith(members.local)
    await removeEnd(here)
    if (kept) await setLiveRestore(here.run, here.pid, true)
  }

  return {
    /** Whether a member is one still; true where the engine of this server does not say. */
    isIn: ({ connection, member }: Link): Promise<boolean> =>
      swarm.has(connection, member.id).catch(() => true),
    async join(member: Member): Promise<void> {
      members.arrive(member.id)
      await withLink(member, join)
    },
    /** @param is_given_up whether it goes also where it cannot be emptied. */
    async leave(member: Member, is_given_up: boolean): Promise<void> {
      const link = (await members.depart(member.id)) ?? members.open(member)
      try {
        if (is_given_up)
          await Promise.race([empty(link).catch(() => {}), pause(CLEAR_MS, undefined, { ref: false })])
        else await empty(link)
      } catch (error) {
        members.arrive(member.id)
        throw error
      } finally {
        link.close()
      }
      const is_ours = await swarm.isOurs()
      if (is_ours) {
        await swarm.forget(member.id)
        await swarm.changeToken()
      }
      const others = members.list().filter((one) => one.member.id !== member.id)
      if (is_ours ? await swarm.isAlone() : others.length === 0) await dissolve()
      else await members.ensureHere()
    },
  }
}
