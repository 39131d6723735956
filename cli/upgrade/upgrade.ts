import { accessSync, constants, existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Config, loadConfig } from '#server/kernel/config'
import { LockedError, lockDirectory } from '#server/kernel/lock'
import { run } from '#server/kernel/process'
import { isRunning, ownUrl, readiness } from '../server-here.ts'
import { CommandError, createProgress, say } from '../terminal.ts'
import { type Serving, servingPath } from './guarded-start.ts'
import { fetchProgram, findSource, placeProgram } from './place.ts'
import { createStillness, holderOf, signsOf } from './signs.ts'
import { readTrial, type Trial, trialPath } from './trial.ts'

const LOOK_MS = 50
/** So long nothing is seen of a program that nobody started again; a large database may take hours. */
const STILL_MS = 180_000

interface Build {
  build: string
  version: string
}

/** What a program says that it is; one that cannot even say so is not installed. */
async function identify(program: string): Promise<Build> {
  const env = process.env.HOME ? { env: { HOME: process.env.HOME } } : {}
  const result = await run([program, '--build'], { cwd: '/', ...env })
  try {
    const { build, version } = JSON.parse(result.stdout) as Build
    if (result.exit_code === 0 && /^[0-9a-f]{16}$/.test(build) && version) return { build, version }
  } catch {
    // Told below.
  }
  throw new CommandError(
    `This is no Portreeve that runs on this machine: ${(result.stderr || result.stdout).trim().slice(0, 300) || 'it says nothing'}. Nothing was changed.`,
  )
}

function servingOf({ data_directory }: Config): Serving {
  try {
    const serving = JSON.parse(readFileSync(servingPath(data_directory), 'utf8')) as Serving
    process.kill(serving.pid, 0)
    return serving
  } catch (cause) {
    throw new CommandError(
      'Portreeve does not run from a one-file program here, or not as a process that this user may end. Run this as the user that it runs as.',
      1,
      { cause },
    )
  }
}

/** Whoever has only the file has to set it up; there is nothing to upgrade. */
function requireInstallation({ data_directory }: Config): void {
  if (existsSync(join(data_directory, 'portreeve.db'))) return
  throw new CommandError(
    `There is no installation in ${data_directory}, so there is nothing to upgrade. portreeve setup makes one; the command portreeve of an installation knows where its own is.`,
  )
}

async function requireReady(config: Config): Promise<void> {
  if (!isRunning(config))
    throw new CommandError('Portreeve is not running. Start it first: an upgrade must be seen to work.')
  const found = await readiness(config)
  if (found?.status !== 'ok')
    throw new CommandError(
      'Portreeve is not ready now. portreeve doctor says why; mend that first, so that an upgrade can be told from it.',
    )
}

function requireWritable(program: string): void {
  try {
    accessSync(dirname(program), constants.W_OK)
  } catch {
    throw new CommandError(`Run this as root: this user may not replace ${program}.`)
  }
}

/** Another user cannot even see whether Portreeve runs: that they need root is what helps them. */
function requireRights({ data_directory }: Config): void {
  if (process.getuid?.() === 0) return
  let program = process.execPath
  try {
    program = (JSON.parse(readFileSync(servingPath(data_directory), 'utf8')) as Serving).program
  } catch {
    // Not theirs to read, or not there: then it is the program that they called.
  }
  requireWritable(program)
}

/** Ends the old server, and waits for the end of the trial; answers how long nobody answered. */
async function replace(config: Config, { pid }: Serving): Promise<{ trial: Trial; away_ms: number }> {
  const progress = createProgress(process.stderr)
  const { data_directory } = config
  let [gone, answered] = [0, 0]
  process.kill(pid, 'SIGTERM')
  progress.show('Starting the new program.')
  const isStill = createStillness(STILL_MS, () => signsOf(data_directory))
  while (!isStill()) {
    const trial = readTrial(data_directory)
    const is_there = await fetch(`${ownUrl(config)}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (!is_there && gone === 0) gone = performance.now()
    if (is_there && gone > 0 && answered === 0) answered = performance.now()
    if (trial?.state === 'failed') progress.show('It does not become ready; going back.')
    if (trial?.state === 'done' || (trial?.state === 'back' && is_there)) {
      progress.end()
      return { trial, away_ms: Math.round(answered - gone) }
    }
    await delay(LOOK_MS)
  }
  progress.end()
  if (holderOf(data_directory) !== undefined)
    throw new CommandError(
      'Portreeve runs, and has come no further for three minutes; its log tells why. It goes on with the upgrade, or back, once it is started anew.',
    )
  throw new CommandError(
    'Nothing started the program again. Start Portreeve as you always do: it then goes on with the upgrade, or back.',
  )
}

export interface UpgradeOptions {
  sha256?: string
}

/** Two at once would write to the same file: what was checked of one could be replaced by a part of the other. */
function lockUpgrades({ data_directory }: Config): () => void {
  const folder = dirname(trialPath(data_directory))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  try {
    return lockDirectory(folder)
  } catch (error) {
    if (!(error instanceof LockedError)) throw error
    throw new CommandError('Another upgrade is under way. Wait until it has ended.')
  }
}

/** `portreeve upgrade`: another program in the place of the one that serves, with a way back that needs nobody. */
export async function upgrade(
  env: Record<string, string | undefined>,
  from: string,
  options: UpgradeOptions,
): Promise<void> {
  const config = loadConfig(env)
  requireRights(config)
  requireInstallation(config)
  const unlock = lockUpgrades(config)
  try {
    await upgradeTo(config, from, options)
  } finally {
    unlock()
  }
}

async function upgradeTo(config: Config, from: string, { sha256 }: UpgradeOptions): Promise<void> {
  await requireReady(config)
  const serving = servingOf(config)
  const program = realpathSync(serving.program.replace(/ \(deleted\)$/, ''))
  requireWritable(program)
  const fresh = await fetchProgram(await findSource(from, sha256), program)
  const [to, now] = [await identify(fresh), await identify(program)].map((one) => one)
  if (to!.build === now!.build) {
    rmSync(fresh, { force: true })
    return say(`Portreeve ${now!.version} of this build runs already; nothing was changed.`)
  }
  placeProgram(config.data_directory, {
    state: 'placed',
    from_version: now!.version,
    to_version: to!.version,
    to_build: to!.build,
    program,
    old_program: `${program}.old`,
    database_copy: null,
    attempts: 0,
    reason: null,
  })
  const { trial, away_ms } = await replace(config, serving)
  if (trial.state === 'back')
    throw new CommandError(
      `The upgrade to ${trial.to_version} failed: ${trial.reason} Portreeve ${trial.from_version} serves again, with its database.`,
    )
  say(
    `Portreeve ${trial.to_version} serves. The API was away for ${(away_ms / 1000).toFixed(1)} s; apps were not.`,
  )
  say(`The program from before is ${trial.old_program}, its database ${trial.database_copy}.`)
}
