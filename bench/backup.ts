/**
 * Backup and restore of a PostgreSQL beside `pg_dump | zstd` and its reverse by hand, in one run: throughput, and
 * the memory that Portreeve takes above idle. With them, how long a new database takes beside `docker run` and
 * `pg_isready`. `npx node bench/backup.ts [--megabytes=2048] [--rounds=3]`
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { createReport, median, ms, numberOptions } from './support/report.ts'

const MIB = 1024 ** 2
const MOST_BYTES = 64 * MIB
const options = numberOptions({ megabytes: 2048, rounds: 3 })
const report = createReport(`Backup and restore of a PostgreSQL of ${options.megabytes} MiB`)
const folder = mkdtempSync(join(tmpdir(), 'bench-backup-'))
const portreeve: Portreeve = await startPortreeve()
const show = async (path: string) => (await portreeve.call('GET', path)).body.data
const patiently = <T>(what: string, check: () => Promise<T | undefined>) => eventually(what, check, 3_600_000)

/** A row is half text that repeats, half bytes that do not. */
const NOISE = Array.from({ length: 16 }, (_, part) => `md5((n * 16 + ${part})::text)`).join(' || ')
const FILL = (megabytes: number) => `CREATE TABLE kept AS SELECT n AS id, repeat('portreeve ', 50) AS words,
  ${NOISE} AS noise FROM generate_series(1, ${megabytes * 1000}) n`

const resident = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${portreeve.pid()}/status`, 'utf8'))![1]) * 1024
/** Most memory above what was there before, while some work goes on. */
async function peakOf<T>(work: () => Promise<T>): Promise<{ result: T; above: number }> {
  const idle = resident()
  let peak = idle
  const timer = setInterval(() => {
    peak = Math.max(peak, resident())
  }, 50)
  try {
    return { result: await work(), above: peak - idle }
  } finally {
    clearInterval(timer)
  }
}
/** A pipeline as an operator writes it; the milliseconds it takes. */
async function byHand(script: string): Promise<number> {
  const began = performance.now()
  const child = spawn('bash', ['-c', `set -eo pipefail; ${script}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`${script} ended with ${code}`)
  return performance.now() - began
}
const running = (id: string) =>
  patiently(`The database ${id} running`, async () => {
    const one = await show(`/api/databases/${id}`)
    if (one.status === 'failed') throw new Error(one.last_error)
    return one.status === 'running' ? one : undefined
  })
const create = async (name: string) =>
  (
    await portreeve.call('POST', '/api/databases', {
      ...{ name, engine: 'postgres', limits: { cpus: 2, memory_bytes: 1024 * MIB } },
    })
  ).body.data.id as string
const ended = (path: string, field = 'status') =>
  patiently(`${path} ending`, async () => {
    const found = await show(path)
    return ['succeeded', 'failed', 'cancelled'].includes(found[field]) ? found : undefined
  })
let count = 0
/** `docker run` and `pg_isready`, as by hand: name of the container and the milliseconds it took. */
async function serverByHand(): Promise<{ name: string; took: number }> {
  const name = `bench-backup-${process.pid}-${(count += 1)}`
  const began = performance.now()
  docker(
    'run',
    '-d',
    '--name',
    name,
    '-e',
    'POSTGRES_PASSWORD=bench',
    '--cpus=2',
    '--memory=1g',
    'postgres:17',
  )
  await byHand(`until docker exec ${name} pg_isready -q -h 127.0.0.1; do sleep 0.1; done`)
  return { name, took: performance.now() - began }
}

try {
  const mine: number[] = []
  const hands: number[] = []
  for (let round = 0; round < options.rounds + 2; round += 1) {
    const began = performance.now()
    await running(await create(`ready-${round}`))
    mine.push(performance.now() - began)
    const { name, took } = await serverByHand()
    hands.push(took)
    docker('rm', '-fv', name)
  }
  const ratio = median(mine) / median(hands)
  report.figure('docker run and pg_isready by hand (median)', ms(median(hands)))
  report.figure('create to ready (median)', ms(median(mine)))
  report.check('create to ready / by hand at most 1.15', ratio <= 1.15, ratio.toFixed(2))

  const id = await create('kept')
  const { username, password, database } = await running(id)
  const container = docker('ps', '-q', '--filter', `label=portreeve.database=${id}`)
  const login = ['-e', `PGPASSWORD=${password}`, container]
  docker(
    'exec',
    ...login,
    'psql',
    '-qh',
    '127.0.0.1',
    '-U',
    username,
    '-d',
    database,
    '-c',
    FILL(options.megabytes),
  )
  await delay(10_000)

  const dump = `docker exec -e PGPASSWORD=${password} ${container} pg_dump -h 127.0.0.1 -U ${username} -d ${database} -Fc -Z0`
  const file = join(folder, `${randomBytes(4).toString('hex')}.zst`)
  const [backups, dumps, restores, loads]: number[][] = [[], [], [], []] as number[][]
  let above = 0
  let bytes = 0
  for (let round = 0; round < options.rounds; round += 1) {
    dumps!.push(await byHand(`${dump} | zstd -3 -q -f -o ${file}`))
    const taken = await peakOf(async () => {
      const { body } = await portreeve.call('POST', `/api/databases/${id}/backup`, { encrypted: false })
      return ended(`/api/backups/${body.data.id}`)
    })
    if (taken.result.status !== 'succeeded') throw new Error(taken.result.error)
    backups!.push(taken.result.duration_ms)
    bytes = taken.result.original_bytes
    above = Math.max(above, taken.above)

    const began = performance.now()
    const { name } = await serverByHand()
    await byHand(
      `zstd -dcq ${file} | docker exec -i ${name} pg_restore -U postgres -d postgres --no-owner --no-privileges -1`,
    )
    loads!.push(performance.now() - began)
    docker('rm', '-fv', name)
    const asked = await portreeve.call('POST', `/api/backups/${taken.result.id}/restore`, {
      ...{ mode: 'new', name: `copy-${round}` },
    })
    const given = await peakOf(() => ended(`/api/system/jobs/${asked.body.data.job_id}`))
    above = Math.max(above, given.above)
    const { duration_ms } = given.result.steps.find((step: { name: string }) => step.name === 'prepare')
    restores!.push(duration_ms)
    await portreeve.call('DELETE', `/api/databases/${asked.body.data.target_id}?skip_backup=true`)
  }
  const rate = (times: number[]) => bytes / MIB / (median(times) / 1000)
  report.figure('size of the dump', `${(bytes / MIB).toFixed(0)} MiB`)
  report.figure('pg_dump | zstd by hand', `${rate(dumps!).toFixed(1)} MiB/s`)
  report.figure('backup', `${rate(backups!).toFixed(1)} MiB/s`)
  const out = rate(backups!) / rate(dumps!)
  report.check('backup / by hand at least 0.9', out >= 0.9, out.toFixed(2))
  report.figure('a server and zstd -d | pg_restore by hand', `${rate(loads!).toFixed(1)} MiB/s`)
  report.figure('restore into a spare', `${rate(restores!).toFixed(1)} MiB/s`)
  const back = rate(restores!) / rate(loads!)
  report.check('restore / by hand at least 0.9', back >= 0.9, back.toFixed(2))
  report.check('memory above idle at most 64 MiB', above <= MOST_BYTES, `${(above / MIB).toFixed(0)} MiB`)
} finally {
  rmSync(folder, { recursive: true, force: true })
  await portreeve.dispose()
}
report.end()
