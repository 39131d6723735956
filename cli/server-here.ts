import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '#server/kernel/config'
import { lockDirectory, LockedError } from '#server/kernel/lock'
import { askOnce } from './http.ts'

export interface Readiness {
  status: string
  checks: Record<string, { ok: boolean; message?: string }>
}

const ANSWER_MS = 5_000

/** Whether a server has the data directory now. */
export function isRunning({ data_directory }: Config): boolean {
  if (!existsSync(join(data_directory, 'lock'))) return false
  try {
    lockDirectory(data_directory)()
    return false
  } catch (error) {
    if (error instanceof LockedError) return true
    throw error
  }
}

/** The address at which a server of these settings is asked from its own machine. */
export function ownUrl({ host, port }: Config): string {
  const address = ['', '0.0.0.0', '::', '[::]'].includes(host) ? '127.0.0.1' : host
  return `http://${address.includes(':') && !address.startsWith('[') ? `[${address}]` : address}:${port}`
}

/** What the server says of itself; undefined when it does not answer. */
export async function readiness(config: Config): Promise<Readiness | undefined> {
  try {
    const { text } = await askOnce({ url: `${ownUrl(config)}/readyz`, within_ms: ANSWER_MS })
    const body = JSON.parse(text) as Partial<Readiness>
    return body.checks && typeof body.status === 'string' ? (body as Readiness) : undefined
  } catch {
    return undefined
  }
}
