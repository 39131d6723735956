import type { SourceTree } from './plan.ts'
import { DETECTED, type SettingValues } from './declared.ts'
import { asFields, at, listAt, readJson, readToml, readYaml, textAt } from './text-formats.ts'

/** One file of another platform and what it declares in our words. */
interface ForeignSettings {
  source: string
  values: Partial<SettingValues>
}

/** `app.json` of Heroku and Dokku: cron jobs and the probe of the web process. */
export function appJsonSettings(tree: SourceTree): Partial<SettingValues> {
  const app = readJson(tree, 'app.json')
  if (app === undefined || at(app, 'expo') !== undefined) return {}
  const jobs = Array.isArray(at(app, 'cron')) ? (at(app, 'cron') as unknown[]) : []
  const cron_jobs = jobs.slice(0, 50).flatMap((job) => {
    const schedule = textAt(job, 'schedule')
    const command = textAt(job, 'command')
    return schedule !== undefined && command !== undefined ? [{ schedule, command }] : []
  })
  const checks = at(app, 'healthchecks', 'web')
  const paths = Array.isArray(checks) ? checks.map((check) => textAt(check, 'path')) : []
  return {
    cron_jobs: cron_jobs.length > 0 ? cron_jobs : undefined,
    // Dokku runs it in the new image before the release goes live; Heroku's `postdeploy` runs once, by hand.
    release_command: textAt(app, 'scripts', 'dokku', 'predeploy'),
    health_check: httpCheck(paths.find((path) => path !== undefined)),
  }
}

/**
 * Files of other platforms, most specific first. Only what means the same here is taken: start, release, port
 * and probe.
 */
export function foreignSettings(tree: SourceTree): ForeignSettings[] {
  return READERS.filter(({ source }) => tree.has(source)).map(({ source, read }) => ({
    source,
    values: read(tree, source),
  }))
}

const READERS: readonly {
  source: string
  read(tree: SourceTree, source: string): Partial<SettingValues>
}[] = [
  { source: 'railway.json', read: (tree, source) => railway(readJson(tree, source)) },
  { source: 'railway.toml', read: (tree, source) => railway(readToml(tree, source)) },
  {
    source: 'railpack.json',
    read: (tree, source) => railpack(readJson(tree, source)),
  },
  { source: 'nixpacks.toml', read: (tree, source) => nixpacks(readToml(tree, source)) },
  { source: 'nixpacks.json', read: (tree, source) => nixpacks(readJson(tree, source)) },
  { source: 'fly.toml', read: (tree, source) => fly(readToml(tree, source)) },
  { source: 'render.yaml', read: (tree, source) => render(readYaml(tree, source)) },
  { source: 'heroku.yml', read: (tree, source) => heroku(readYaml(tree, source)) },
  { source: 'zbpack.json', read: (tree, source) => zeabur(readJson(tree, source)) },
  { source: '.do/app.yaml', read: (tree, source) => appPlatform(readYaml(tree, source)) },
  { source: 'apprunner.yaml', read: (tree, source) => appRunner(readYaml(tree, source)) },
  { source: 'app.yaml', read: (tree, source) => appEngine(readYaml(tree, source)) },
  { source: 'project.toml', read: (tree, source) => buildpacks(readToml(tree, source)) },
]

function railway(file: unknown): Partial<SettingValues> {
  const release = at(file, 'deploy', 'preDeployCommand')
  return {
    build_command: textAt(file, 'build', 'buildCommand'),
    start_command: textAt(file, 'deploy', 'startCommand'),
    release_command: Array.isArray(release)
      ? listAt(file, 'deploy', 'preDeployCommand').join(' && ')
      : textAt(file, 'deploy', 'preDeployCommand'),
    health_check: httpCheck(textAt(file, 'deploy', 'healthcheckPath')),
  }
}

/** The commands of a step, in order; `DETECTED` among them stands for those that are detected. */
function commandsOf(commands: unknown): string | undefined {
  const lines = (Array.isArray(commands) ? commands : [])
    .map((one) => (typeof one === 'string' ? one : textAt(one, 'cmd')))
    .filter((line) => line !== undefined && line.trim() !== '')
  return lines.every((line) => line === DETECTED) ? undefined : lines.join(' && ')
}

function railpack(file: unknown): Partial<SettingValues> {
  return {
    install_command: commandsOf(at(file, 'steps', 'install', 'commands')),
    build_command: commandsOf(at(file, 'steps', 'build', 'commands')),
    start_command: textAt(file, 'deploy', 'startCommand'),
  }
}

function nixpacks(file: unknown): Partial<SettingValues> {
  return {
    start_command: textAt(file, 'start', 'cmd') ?? textAt(file, 'start'),
    install_command: commandsOf(at(file, 'phases', 'install', 'cmds')),
    build_command: commandsOf(at(file, 'phases', 'build', 'cmds')),
  }
}

function fly(file: unknown): Partial<SettingValues> {
  const services = at(file, 'services')
  const port =
    at(file, 'http_service', 'internal_port') ??
    at(Array.isArray(services) ? services[0] : undefined, 'internal_port')
  return {
    release_command: textAt(file, 'deploy', 'release_command'),
    port: typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined,
  }
}

/** The one web service of a blueprint in the root; with several it is not known which one this app is. */
function render(file: unknown): Partial<SettingValues> {
  const services = at(file, 'services')
  const web = (Array.isArray(services) ? services : []).filter((service) => textAt(service, 'type') === 'web')
  const service = asFields(web[0])
  if (
    web.length !== 1 ||
    service === undefined ||
    textAt(service, 'rootDir') !== undefined ||
    textAt(service, 'runtime') === 'docker'
  )
    return {}
  return {
    start_command: textAt(service, 'startCommand'),
    release_command: textAt(service, 'preDeployCommand'),
    health_check: httpCheck(textAt(service, 'healthCheckPath')),
  }
}

function heroku(file: unknown): Partial<SettingValues> {
  return { start_command: textAt(file, 'run', 'web') ?? textAt(file, 'run', 'web', 'command') }
}

function zeabur(file: unknown): Partial<SettingValues> {
  return {
    install_command: textAt(file, 'install_command'),
    build_command: textAt(file, 'build_command'),
    start_command: textAt(file, 'start_command'),
  }
}

/** The one service of a specification in the root, like a blueprint of Render's. */
function appPlatform(file: unknown): Partial<SettingValues> {
  const services = at(file, 'services')
  const service = Array.isArray(services) && services.length === 1 ? asFields(services[0]) : undefined
  const folder = textAt(service, 'source_dir') ?? '/'
  if (
    service === undefined ||
    !['/', '.', './'].includes(folder) ||
    textAt(service, 'dockerfile_path') !== undefined
  )
    return {}
  return {
    build_command: textAt(service, 'build_command'),
    start_command: textAt(service, 'run_command'),
    health_check: httpCheck(textAt(service, 'health_check', 'http_path')),
  }
}

function appRunner(file: unknown): Partial<SettingValues> {
  return { start_command: textAt(file, 'run', 'command') }
}

/** App Engine's `entrypoint`, of a file that names its runtime; many other tools have an app.yaml too. */
function appEngine(file: unknown): Partial<SettingValues> {
  return textAt(file, 'runtime') === undefined ? {} : { start_command: textAt(file, 'entrypoint') }
}

/** The entry point that a project descriptor of Cloud Native Buildpacks hands to Google's builder. */
function buildpacks(file: unknown): Partial<SettingValues> {
  const variables = [at(file, 'build', 'env'), at(file, 'io', 'buildpacks', 'build', 'env')].flatMap(
    (list) => (Array.isArray(list) ? (list as unknown[]) : []),
  )
  return {
    start_command: textAt(
      variables.find((variable) => textAt(variable, 'name') === 'GOOGLE_ENTRYPOINT'),
      'value',
    ),
  }
}

function httpCheck(path: string | undefined): { type: 'http'; path: string } | undefined {
  return path !== undefined && /^\/[^\s#]{0,500}$/.test(path) ? { type: 'http', path } : undefined
}
