import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { networkInterfaces } from 'node:os'
import { dirname, join } from 'node:path'
import { loadConfig } from '#server/kernel/config'
import { openDb } from '#server/kernel/db'
import { createMeta } from '#server/kernel/meta'
import { run } from '#server/kernel/process'
import { shellWord } from '#server/kernel/shell-word'
import { edgeName } from '#server/platform/ingress/edge-name'
import { cacheDirectory } from '../binary/unpack.ts'
import { isRunning, ownUrl } from '../server-here.ts'
import { CommandError, say } from '../terminal.ts'
import { dataOf } from './installed.ts'
import { ensureEngine, requireMachine } from './machine.ts'
import { type PlaceOptions, placesOf } from './places.ts'
import { createService, type Places, requireOwnUnit } from './service.ts'
import { mergeSettings, readSettings, storeSettings } from './settings-file.ts'
import { startService } from './start-service.ts'

type Environment = Record<string, string | undefined>
export type SetupOptions = PlaceOptions

/** The scripts of the supervisor lie beside the unpacked program. */
export const shellFolder = (): string => join(dirname(process.argv[1] ?? ''), 'shell')

/** What a program calls itself; undefined for what is none. */
async function buildOf(program: string): Promise<string | undefined> {
  if (!existsSync(program)) return undefined
  const { stdout } = await run([program, '--build'], { cwd: '/', env: { HOME: '/root' } })
  return /"build":"([0-9a-f]{16})"/.exec(stdout)?.[1]
}

/** A program serves one data directory; the folder of another installation is left alone. */
function requireOwnProgram({ data, program }: Places): void {
  if (existsSync(program) && dataOf(program) !== data)
    throw new CommandError(
      `${program} serves ${dataOf(program)}. With --data-dir, give --bin-dir too: each installation has its own.`,
    )
}

/** Nor is a command of that name taken away that somebody else put there; said before anything is changed. */
function requireOwnCommand(bin: string, { program }: Places): void {
  const link = join(bin, 'portreeve')
  if (existsSync(link) && !(existsSync(program) && realpathSync(link) === realpathSync(program)))
    throw new CommandError(`${link} is another program. Remove it, or give --bin-dir.`)
}

/** Copies this program to its place, unless it is there. Another build is put there by `portreeve upgrade`. */
async function placeProgram({ data, program, data_link }: Places): Promise<boolean> {
  const there = await buildOf(program)
  if (there === process.env.PORTREEVE_BUILD) return false
  if (there !== undefined)
    throw new CommandError(
      `Another build is installed. Replace it with a way back: portreeve upgrade ${process.execPath}`,
    )
  mkdirSync(dirname(program), { recursive: true })
  // Everybody may call it, whatever the umask of this call: for other users it is the client.
  chmodSync(dirname(program), 0o755)
  rmSync(data_link, { force: true })
  symlinkSync(data, data_link)
  copyFileSync(process.execPath, `${program}.new`)
  chmodSync(`${program}.new`, 0o755)
  renameSync(`${program}.new`, program)
  return true
}

function linkCommand(bin: string, { program }: Places): boolean {
  const link = join(bin, 'portreeve')
  if (existsSync(link)) return false
  mkdirSync(bin, { recursive: true })
  rmSync(link, { force: true })
  symlinkSync(program, link)
  return true
}

/** Where people reach it: this machine's first address when it listens on all. */
function publicUrl(config: ReturnType<typeof loadConfig>): string {
  if (config.public_url) return config.public_url
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  const address = own.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
  const is_all = ['', '0.0.0.0', '::', '[::]'].includes(config.host)
  return is_all && address ? `http://${address}:${config.port}` : ownUrl(config)
}

/** `portreeve setup`: from a bare machine to a server that answers. Called again, it changes nothing. */
export async function setup(env: Environment, options: SetupOptions): Promise<void> {
  const places = placesOf(options)
  requireMachine(places.data)
  requireOwnProgram(places)
  requireOwnCommand(options.binDir, places)
  requireOwnUnit(places.settings)
  const settings = mergeSettings(readSettings(places.settings), env)
  delete settings.PORTREEVE_CACHE_DIR
  delete settings.PORTREEVE_DATA_DIR
  const effective = { PORT: '9000', ...settings, PORTREEVE_DATA_DIR: places.data }
  const config = loadConfig(effective)
  const done = await ensureEngine(config.docker_host)
  mkdirSync(places.data, { recursive: true, mode: 0o700 })
  if (await placeProgram(places)) done.push(`Installed ${places.program}.`)
  mkdirSync(places.cache, { recursive: true, mode: 0o700 })
  if (linkCommand(options.binDir, places)) done.push(`Linked ${join(options.binDir, 'portreeve')}.`)
  const was_running = isRunning(config)
  const stored = storeSettings(places.settings, settings)
  if (stored.is_changed) done.push('Stored the settings.')
  const service = createService(places, () => readSettings(places.settings), shellFolder())
  const configBefore = () =>
    loadConfig({ PORT: '9000', ...readSettings(places.settings), PORTREEVE_DATA_DIR: places.data })
  if (await startService({ service, stored, was_running, config, configBefore }))
    done.push('Started Portreeve.')
  for (const line of done) say(line)
  if (done.length === 0) say('Portreeve is set up and running already; nothing was changed.')
  const password = join(places.data, 'initial-admin-password')
  say('')
  say(`Portreeve is ready:  ${publicUrl(config)}`)
  say(`Administrator:       ${config.admin_email}`)
  if (existsSync(password))
    say(`Password:            ${readFileSync(password, 'utf8').trim()}   (change it after the first login)`)
  say(`Next:                portreeve login ${publicUrl(config)}`)
}

/** The name that everything of an installation carries on the engine; undefined where it never started. */
function installationName(data: string): string | undefined {
  const path = join(data, 'portreeve.db')
  if (!existsSync(path)) return undefined
  let db: ReturnType<typeof openDb> | undefined
  try {
    db = openDb(path)
    return createMeta(db).get('installation')
  } catch {
    return undefined
  } finally {
    db?.close()
  }
}

/**
 * Commands that take away what an uninstall leaves, in the order in which they work: of this installation and of
 * no other on the engine.
 * @param docker_host engine that it was set to use; the machine's own when there is none.
 */
export function remains({ data }: Places, docker_host?: string): string[] {
  const name = installationName(data)
  const ours = `--filter label=portreeve.installation=${name}`
  const labelled = [
    `docker ps -aq ${ours} | xargs -r docker rm -f`,
    `docker network ls -q ${ours} | xargs -r docker network rm`,
    `docker image ls -q ${ours} | sort -u | xargs -r docker image rm -f`,
    `docker volume ls -q ${ours} | xargs -r docker volume rm    # data of apps and databases`,
  ]
  return [
    ...(docker_host ? [`export DOCKER_HOST=${shellWord(docker_host)}`] : []),
    ...(name === undefined ? [] : labelled),
    `docker rm -f ${edgeName(join(data, 'ingress'))}`,
    `rm -r ${shellWord(data)}`,
  ]
}

/** `portreeve uninstall`: the service, the command and the program go; apps and data stay, and are named. */
export async function uninstall(options: SetupOptions): Promise<void> {
  if (process.getuid?.() !== 0) throw new CommandError('Run this as root: it takes a service away.')
  const places = placesOf(options)
  requireOwnProgram(places)
  requireOwnUnit(places.settings)
  const service = createService(places, () => readSettings(places.settings), shellFolder())
  const was_running = await service.is_running()
  const { DOCKER_HOST } = readSettings(places.settings)
  await service.remove()
  const link = join(options.binDir, 'portreeve')
  if (existsSync(link) && existsSync(places.program) && realpathSync(link) === realpathSync(places.program))
    rmSync(link)
  rmSync(dirname(places.program), { recursive: true, force: true })
  say(
    was_running
      ? 'Portreeve is stopped, and its program and service are gone.'
      : 'Its program and service are gone.',
  )
  say(
    `What it keeps is still in ${places.data}: keys, database, logs, backups. Apps, their volumes and the edge serve on, and so does the container engine.`,
  )
  say('To remove those too:')
  for (const line of remains(places, DOCKER_HOST)) say(`  ${line}`)
  say(
    'Rules of the firewall that begin with PTR- guard the apps; they are gone after the next start of the machine.',
  )
  const cache = cacheDirectory(process.env, 0)
  if (process.env.PORTREEVE_CACHE_DIR) say(`The unpacked program is in ${cache}.`)
  // Last: this very command runs from it.
  else rmSync(cache, { recursive: true, force: true })
}
