import { settledDatabase } from '#test/support/databases'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { isAlive } from './alive.ts'
import { createOwnEngine, inOwnNetwork, type OwnEngine } from './own-engine.ts'
import { createReport, median, ms, numberOptions, onlyOption } from './report.ts'

export const LIMIT_MS = 600_000
/** Until work that was asked for reaches its point. */
const CRASH_LIMIT_MS = 240_000

/** A database as its endpoint shows it, with what opens it. */
export interface OpenDatabase {
  id: string
  username: string
  password: string
  database: string
  volume_id: string
  [field: string]: any
}
/** What a sweep works with at each of its points. */
export interface Scene {
  portreeve: Portreeve
  rows: number
  /** A call that must be answered well; the data of the answer. */
  call(method: string, path: string, body?: unknown): Promise<any>
  /** Makes a PostgreSQL and waits until it runs. */
  make(body?: object): Promise<OpenDatabase>
  /** Waits until the work on a database has ended and its server answers. */
  running(id: string): Promise<OpenDatabase>
  ask(database: OpenDatabase, text: string): string
  /** Notes what is not as it must be. */
  fault(text: string): void
  /**
   * Starts Portreeve so that it dies at the point, gives it the work, kills what else is to be killed, and
   * starts what was killed again.
   */
  die(database_id: string, work: () => Promise<unknown>): Promise<void>
  /** Notes a server or a volume too many or too few. */
  checkLeftovers(database: OpenDatabase): void
  /** Removes a database without a backup; nothing of it may be left. */
  remove(id: string): Promise<void>
}
export interface Sweep {
  title: string
  /** Steps of each kind of job. */
  steps: Record<string, readonly string[]>
  /** What must hold after every kill. */
  verdict: string
  /** Images that the engine of the experiment needs. */
  images: readonly string[]
  /** Prepares, dies at the point, and looks at what is there. Begins to count once it was started again. */
  at(kind: string, scene: Scene): Promise<void>
}

const DEFAULTS = { rows: 10_000, database: 0, engine: 0 }

/**
 * Kills Portreeve with -9 before and after every step of some jobs; with `--database=1` the servers of the
 * database as well, with `--engine=1` the container engine, which is one of the experiment's own then. With
 * `--only=backup.restore` only at points whose name has that in it.
 */
export async function sweepKillPoints(sweep: Sweep): Promise<void> {
  const options = numberOptions(DEFAULTS)
  if (options.engine === 0) return run(sweep, options, undefined)
  inOwnNetwork()
  if (process.env.BENCH_OWN_NETWORK !== '1') return
  const engine = await createOwnEngine()
  await engine.start()
  try {
    engine.load(...sweep.images)
    process.env.DOCKER_HOST = engine.host
    await run(sweep, options, engine)
  } finally {
    await engine.close()
  }
}

async function run(sweep: Sweep, options: typeof DEFAULTS, engine: OwnEngine | undefined): Promise<void> {
  const killed = [
    'Portreeve',
    ...(options.database > 0 ? ['the database'] : []),
    ...(engine ? ['the engine'] : []),
  ]
  const report = createReport(`${sweep.title}: kill -9 of ${killed.join(', ')}`)
  const faults: string[] = []
  const recoveries: number[] = []
  const only = onlyOption()
  const portreeve = await startPortreeve()
  for (const [kind, steps] of Object.entries(sweep.steps))
    for (const step of steps)
      for (const side of ['before', 'after']) {
        const point = `${kind}.${step}:${side}`
        if (!point.includes(only)) continue
        const known = faults.length
        let began_ms = performance.now()
        const scene = createScene(portreeve, {
          ...{ point, options, engine },
          fault: (text) => void faults.push(`${point}: ${text}`),
          started: () => {
            began_ms = performance.now()
          },
        })
        await sweep.at(kind, scene).catch((error: unknown) => scene.fault((error as Error).message))
        recoveries.push(performance.now() - began_ms)
        const found = faults.slice(known)
        report.figure(point, found.length === 0 ? `whole after ${ms(recoveries.at(-1)!)}` : found.join(' | '))
      }
  report.figure('kills', recoveries.length)
  report.figure('median until everything was looked at', ms(median(recoveries)))
  report.check(
    sweep.verdict,
    faults.length === 0,
    faults.length === 0 ? 'always' : `\n    ${faults.join('\n    ')}`,
  )
  await portreeve.dispose()
  report.end()
}

let number = 0
function createScene(
  portreeve: Portreeve,
  given: {
    point: string
    options: typeof DEFAULTS
    engine: OwnEngine | undefined
    fault(text: string): void
    started(): void
  },
): Scene {
  const { point, options, engine, fault } = given
  const call: Scene['call'] = async (method, path, body) => {
    const answer = await portreeve.call(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  const listed = (what: string[], id: string) =>
    docker(...what, '--filter', `label=portreeve.database=${id}`)
      .split('\n')
      .filter(Boolean)
      .sort()
  const servers = (id: string) => listed(['ps', '-q'], id)
  const running: Scene['running'] = (id) =>
    eventually(
      `The database ${id} running`,
      async () => {
        const one = await settledDatabase(portreeve, id)
        return one.status === 'running' ? one : undefined
      },
      LIMIT_MS,
    )
  return {
    portreeve,
    rows: options.rows,
    call,
    running,
    fault,
    async make(body = {}) {
      const name = `crash-${(number += 1)}`
      const { id } = await call('POST', '/api/databases', { name, engine: 'postgres', ...body })
      return running(id)
    },
    ask: ({ id, username, password, database }, text) =>
      docker(
        ...['exec', '-e', `PGPASSWORD=${password}`, servers(id)[0] ?? 'none', 'psql'],
        ...['-h', '127.0.0.1', '-U', username, '-d', database, '-Atqc', text],
      ),
    async die(id, work) {
      await portreeve.stop()
      await portreeve.start({ PORTREEVE_CRASH_AT: point })
      await work().catch((error: unknown) => {
        // The process may be gone before it has answered.
        if (!(error instanceof TypeError)) throw error
      })
      const died = () => (isAlive(portreeve.pid()) ? undefined : true)
      await eventually(`The crash at ${point}`, died, CRASH_LIMIT_MS)
      if (options.database > 0 && servers(id).length > 0) docker('kill', '--signal=KILL', ...servers(id))
      if (engine) {
        await engine.kill()
        await engine.start()
      }
      await portreeve.start()
      given.started()
    },
    checkLeftovers({ id, volume_id, previous_volume, older_volumes }) {
      const found = servers(id).length
      if (found !== 1) fault(`${found} servers`)
      const volumes = listed(['volume', 'ls', '-q'], id).join()
      const expected = [volume_id, ...[previous_volume, ...older_volumes].map((one) => one?.volume_id)]
        .filter(Boolean)
        .sort()
        .join()
      if (volumes !== expected) fault(`volumes ${volumes} and not ${expected}`)
    },
    async remove(id) {
      await call('DELETE', `/api/databases/${id}?skip_backup=true`)
      await eventually(
        'The database being gone',
        async () => ((await portreeve.call('GET', `/api/databases/${id}`)).status === 404 ? true : undefined),
        LIMIT_MS,
      )
      const left = [...listed(['ps', '-aq'], id), ...listed(['volume', 'ls', '-q'], id)]
      if (left.length > 0) fault(`left over: ${left.join()}`)
    },
  }
}
