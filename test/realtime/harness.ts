import { join } from 'node:path'
import { type Actor, type ProjectRole, visibleProjects } from '#server/kernel/access'
import { ApiError } from '#server/kernel/errors'
import { createEvents, type NewEvent } from '#server/kernel/events'
import { createDeploymentLogs } from '#server/deployments/logs'
import type { Channel, ChannelLine, ChannelLog } from '#server/kernel/channels'
import type { Outgoing, Peer, RealtimePorts, Revoked } from '#server/realtime/ports'
import { createRealtime } from '#server/realtime/realtime'
import { createTestKernel } from '#test/support/kernel'

/** A connection that keeps what it was sent. */
export interface TestPeer extends Peer {
  received: Outgoing[]
  /** Bytes that the client is said not to have taken yet. */
  buffered: number
  pings: number
  is_paused: boolean
  closed: { code: number; reason: string } | 'terminated' | undefined
}
export function createTestPeer(): TestPeer {
  const peer: TestPeer = {
    received: [],
    buffered: 0,
    pings: 0,
    is_paused: false,
    closed: undefined,
    send: (text) => void peer.received.push(JSON.parse(text) as Outgoing),
    bufferedBytes: () => peer.buffered,
    ping: () => void (peer.pings += 1),
    close: (code, reason) => void (peer.closed = { code, reason }),
    pause: () => void (peer.is_paused = true),
    resume: () => void (peer.is_paused = false),
    terminate: () => void (peer.closed = 'terminated'),
  }
  return peer
}

/** The hub on real events and real deployment logs, with users and instances that a test steers. */
export function createRealtimeBench() {
  const kernel = createTestKernel()
  const events = createEvents(kernel.db, kernel.clock, kernel.log)
  const logs = createDeploymentLogs(join(kernel.config.data_directory, 'logs'), kernel.clock)
  const listeners = new Set<(revoked: Revoked) => void>()
  const users = new Map<string, Partial<Actor> | undefined>()
  /** What instances of any app printed, and who listens to it. */
  const printed: (ChannelLine & { text: string })[] = []
  const readers = new Set<(line: ChannelLine) => void>()
  const runtime: ChannelLog = {
    latest: () => printed.length,
    after: (_id, seq, limit) => printed.slice(seq, seq + limit),
    subscribe(_id, listener) {
      const reader = (line: ChannelLine) => listener(line)
      readers.add(reader)
      return () => readers.delete(reader)
    },
  }
  const actor = (name: string, project?: ProjectRole): Actor => {
    const who: Actor = {
      user_id: `usr_${name}`,
      email: '',
      name,
      role: 'member',
      method: 'bearer',
      credential_id: `ses_${name}`,
      projects: new Map(project ? [['prj_1', project]] : []),
      scope: 'full',
      address: '',
      request_id: '',
    }
    users.set(who.user_id, {})
    return who
  }
  /** Projects of what there is. */
  const places: Record<string, string> = {
    app_1: 'prj_1',
    dep_1: 'prj_1',
    db_1: 'prj_1',
    bkp_1: 'prj_1',
    prj_1: 'prj_1',
    app_2: 'prj_2',
    prj_2: 'prj_2',
  }
  const channels: Channel[] = [
    { name: 'apps/:id', kind: 'events', noun: 'app', events: (app_id) => ({ app_id }) },
    { name: 'apps/:id/logs', kind: 'log', noun: 'app', log: runtime },
    {
      name: 'apps/:id/logs/access',
      kind: 'log',
      noun: 'app',
      log: { latest: () => 0, after: () => [], subscribe: () => () => undefined },
    },
    {
      name: 'databases/:id',
      kind: 'events',
      noun: 'database',
      events: (database_id) => ({ database_id }),
    },
    {
      name: 'backups/:id',
      kind: 'events',
      noun: 'backup',
      events: (backup_id) => ({ backup_id }),
    },
    {
      name: 'deployments/:id',
      kind: 'events',
      noun: 'deployment',
      events: (deployment_id) => ({ deployment_id }),
      log: logs,
    },
    { name: 'nodes/:id', kind: 'events', exists: () => true, events: (node_id) => ({ node_id }) },
    { name: 'projects/:id', kind: 'events', noun: 'project', events: (project_id) => ({ project_id }) },
    {
      name: 'projects',
      kind: 'events',
      events: (_id, actor) => ({ in_projects: visibleProjects(actor) ?? 'all' }),
    },
    { name: 'system', kind: 'events', access: 'admin', events: () => ({}) },
  ]
  const ports: RealtimePorts = {
    clock: kernel.clock,
    log: kernel.log,
    events,
    channels: () => channels,
    locate: (_noun, id) => (id.startsWith('app_many') ? 'prj_1' : places[id]),
    refresh(who) {
      const change = users.get(who.user_id)
      if (!change) throw new ApiError('UNAUTHORIZED', 'ended')
      return { ...who, ...change }
    },
    onRevocation(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const realtime = createRealtime(ports, {
    now: kernel.clock.monotonic_ms,
    defer: (fn, delay_ms) => void deferred.push({ fn, at_ms: kernel.clock.monotonic_ms() + delay_ms }),
  })
  let deferred: { fn: () => void; at_ms: number }[] = []
  /** Does what is due by now, as the event loop would. */
  const settle = () => {
    for (;;) {
      const due = deferred.filter(({ at_ms }) => at_ms <= kernel.clock.monotonic_ms())
      if (due.length === 0) return
      deferred = deferred.filter((one) => !due.includes(one))
      for (const { fn } of due) fn()
    }
  }
  return {
    kernel,
    settle,
    events,
    logs,
    users,
    places,
    /** How many subscriptions listen to what apps print. */
    listening: () => readers.size,
    /** One more line of an app. */
    print(text: string): void {
      const line = { seq: printed.length + 1, text }
      printed.push(line)
      for (const reader of readers) reader(line)
    },
    actor,
    realtime,
    revoke: (revoked: Revoked) => listeners.forEach((listener) => listener(revoked)),
    /** Opens a connection of somebody. */
    connect(who: Actor) {
      const peer = createTestPeer()
      realtime.open(peer, who)
      const say = (message: unknown) => {
        realtime.message(peer, typeof message === 'string' ? message : JSON.stringify(message))
        settle()
      }
      return {
        peer,
        say,
        subscribe: (channel: string, after?: string | number) =>
          say({ type: 'subscribe', channel, ...(after === undefined ? {} : { after }) }),
      }
    },
    event: (
      type: string,
      about: Partial<NewEvent> = {
        app_id: 'app_1',
        project_id: 'prj_1',
      },
    ) => events.append({ type, payload: {}, ...about }),
    line: (text: string) => logs.append('dep_1', 'build', 'stdout', text),
    pass(duration_ms: number) {
      for (let left = duration_ms; left > 0; left -= 1000) {
        kernel.clock.advance(Math.min(left, 1000))
        realtime.tick()
        settle()
      }
    },
    dispose() {
      realtime.stop()
      logs.flush()
      kernel.dispose()
    },
  }
}
export type RealtimeBench = ReturnType<typeof createRealtimeBench>
