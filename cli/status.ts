import { loadConfig } from '#server/kernel/config'
import { openDatabase } from './open-database.ts'
import { isRunning, ownUrl, readiness } from './server-here.ts'
import { say } from './terminal.ts'

/** The same as that of `install.sh --status`. */
const NOT_READY = 3

/** How many rows of a table have each status, such as `3 running, 1 stopped`. */
function counted(db: ReturnType<typeof openDatabase>, table: 'apps' | 'databases'): string {
  const rows = db
    .sql(`SELECT status, count(*) AS count FROM ${table} GROUP BY status ORDER BY 2 DESC`)
    .all() as {
    status: string
    count: number
  }[]
  return rows.map(({ status, count }) => `${count} ${status}`).join(', ') || 'none'
}

/**
 * `portreeve status`: whether the server runs, whether it is ready, and what it runs.
 * @returns the exit code: 0 when it is ready, 3 when it is not.
 */
export async function status(env: Record<string, string | undefined>): Promise<number> {
  const config = loadConfig(env)
  const db = openDatabase(config)
  try {
    const running = isRunning(config)
    const found = running ? await readiness(config) : undefined
    if (!running) say('Portreeve is not running. Apps that were deployed go on serving.')
    else if (!found) say(`Portreeve runs, but does not answer at ${ownUrl(config)}.`)
    else if (found.status === 'ok') say(`Portreeve is ready at ${ownUrl(config)}.`)
    else say('Portreeve runs, but is not ready.')
    for (const [name, { ok, message }] of Object.entries(found?.checks ?? {}))
      if (!ok || message !== undefined) say(`  ${name}: ${message ?? 'not well'}`)
    say(`Data:       ${config.data_directory}`)
    say(`Edge:       ports ${config.http_port} and ${config.https_port}`)
    say(`Apps:       ${counted(db, 'apps')}`)
    say(`Databases:  ${counted(db, 'databases')}`)
    return found?.status === 'ok' ? 0 : NOT_READY
  } finally {
    db.close()
  }
}
