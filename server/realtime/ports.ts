import type { Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { Events } from '#server/kernel/events'
import type { Log } from '#server/kernel/log'

/** One line of a build or release log; `seq` counts within its deployment from 1 without a gap. */
export interface DeploymentLine {
  seq: number
  at: string
  step: string
  stream: string
  text: string
}
/** One line that an instance printed. */
export interface RuntimeLine {
  at: string
  stream: string
  text: string
}
/** One line of an app's access log; `seq` counts within the app. */
export interface AccessLogLine {
  seq: number
  at: string
}
/** A proof of identity that ended, or a user whose rights changed. */
export type Revoked =
  | { kind: 'session' | 'api_key'; id: string; user_id: string }
  | { kind: 'user'; user_id: string }

/** What the realtime part needs from the rest of the product. */
export interface RealtimePorts {
  clock: Clock
  log: Log
  events: Pick<Events, 'after' | 'latest' | 'subscribe'>
  /** Project of an app, deployment or project; undefined when there is none of that id. */
  locate(noun: string, id: string): string | undefined
  /** The caller as they are now; throws when session, key or user have ended. */
  refresh(actor: Actor): Actor
  onRevocation(listener: (revoked: Revoked) => void): () => void
  deploymentLogs: {
    /** Lines after a position, oldest first. */
    after(deployment_id: string, seq: number, limit: number): DeploymentLine[]
    /** The newest lines, oldest first. */
    tail(deployment_id: string, count: number): DeploymentLine[]
    subscribe(deployment_id: string, listener: (line: DeploymentLine) => void): () => void
  }
  accessLogs: {
    /** Number of the newest line of an app. */
    latest(app_id: string): number
    /** Lines after a number, oldest first. */
    after(app_id: string, seq: number, limit: number): AccessLogLine[]
    subscribe(app_id: string, listener: (line: AccessLogLine) => void): () => void
  }
  runtimeLogs: {
    /** Tells every line of the instances of an app or a database from `tail` lines back, until the signal aborts. */
    follow(
      of: { noun: 'app' | 'database'; id: string },
      tail: number,
      signal: AbortSignal,
      onLine: (instance_id: string, line: RuntimeLine) => void,
    ): Promise<void>
  }
}

/** One open connection, without the types of any WebSocket library. */
export interface Peer {
  send(text: string): void
  /** Bytes that were sent but not taken by the client yet. */
  bufferedBytes(): number
  ping(): void
  close(code: number, reason: string): void
  /** Ends the connection without a farewell that nobody would read. */
  terminate(): void
}

/** What the server sends. */
export interface Outgoing {
  /** Kind of an event (`deployment.step`), `log`, or `subscribed`, `unsubscribed`, `gap`, `error`, `pong`. */
  type: string
  channel: string | null
  /** Give it back as `after` to go on from here; null where there is nothing to go on from. */
  cursor: string | null
  data: unknown
}
