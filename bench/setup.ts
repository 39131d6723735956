/**
 * From a machine with nothing of Portreeve to a first app that answers, by one clock: `portreeve setup` and `portreeve
 * deploy` of the one-file program, and with `--install=1` also `install.sh` of a fresh clone and the same deploy.
 * `npx node bench/setup.ts [--install=0]`. Needs `npm run binary`, root, and an engine with the base images: what is
 * downloaded is not measured, but packages that `install.sh` fetches are.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { docker, eventually, freePorts, nodeApp } from '#test/support/portreeve'
import { createReport, numberOptions } from './support/report.ts'

const PROGRAM = resolve('dist/portreeve')
const PASSWORD = 'correct horse battery staple'
const options = numberOptions({ install: 0 })
const report = createReport('a bare machine to a first app that answers')
if (!existsSync(PROGRAM)) throw new Error('Build the binary first: npm run binary')

type Environment = Record<string, string>
/** How this machine reaches its registry of packages. */
const NETWORK = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /^(npm_config_|https?_proxy|no_proxy)/i.test(name)),
) as Environment
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
function run(command: string, args: string[], at: { cwd: string; env: Environment; input?: string }): string {
  const { status, stdout, stderr } = spawnSync(command, args, { ...at, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`)
  return stdout
}

const managed = () =>
  docker('ps', '-aq', '--filter', 'label=portreeve.managed=true').split('\n').filter(Boolean)

/** A home, an app and ports of its own; `begin` makes the server, `end` takes it away. */
async function measure(
  name: string,
  begin: (home: string, env: Environment) => void,
  end: (home: string, env: Environment) => void,
): Promise<number> {
  const before = managed()
  const home = mkdtempSync(join(tmpdir(), 'ptr-first-'))
  const [port = 0, http = 0, https = 0] = await freePorts(3)
  const folder = join(home, 'shop')
  mkdirSync(folder)
  for (const [file, text] of Object.entries(nodeApp('first'))) writeFileSync(join(folder, file), text)
  const env: Environment = {
    ...NETWORK,
    NPM_CONFIG_USERCONFIG: join(process.env.HOME ?? '/root', '.npmrc'),
    PATH: process.env.PATH!,
    HOME: home,
    HOST: '127.0.0.1',
    PORT: String(port),
    PORTREEVE_HTTP_PORT: String(http),
    PORTREEVE_HTTPS_PORT: String(https),
    PORTREEVE_BASE_DOMAIN: 'apps.test',
    PORTREEVE_ADMIN_PASSWORD: PASSWORD,
    ...(process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {}),
  }
  try {
    const began = performance.now()
    begin(home, env)
    const is_set_up = performance.now()
    const url = `http://127.0.0.1:${port}`
    const at = { cwd: folder, env: { ...env, PORTREEVE_CACHE_DIR: join(home, 'cache') } }
    run(PROGRAM, ['login', url, '--email', 'admin@localhost', '--password-stdin'], { ...at, input: PASSWORD })
    run(PROGRAM, ['deploy'], at)
    await eventually('The answer of the app', async () => {
      const answer = execFileSync('curl', ['-sf', '-H', 'host: shop.apps.test', `http://127.0.0.1:${http}/`])
      return String(answer) === 'first' ? true : undefined
    })
    const over = performance.now()
    report.figure(`${name}: set up`, seconds(is_set_up - began))
    report.figure(`${name}: login, deploy, first answer`, seconds(over - is_set_up))
    report.figure(`${name}: in all`, seconds(over - began))
    return over - began
  } finally {
    end(home, env)
    // Apps serve on after both; on the engine of this bench what has come since is theirs.
    const made = managed().filter((id) => !before.includes(id))
    if (made.length > 0) docker('rm', '-f', ...made)
    rmSync(home, { recursive: true, force: true })
  }
}

const places = (home: string) => ['--data-dir', join(home, 'data'), '--bin-dir', join(home, 'bin')]
const one_file = await measure(
  'portreeve setup',
  (home, env) => void run(PROGRAM, ['setup', ...places(home)], { cwd: home, env }),
  (home, env) => void spawnSync(PROGRAM, ['uninstall', ...places(home)], { cwd: home, env }),
)
if (options.install) {
  const checkout = (home: string) => join(home, 'checkout')
  const by_script = await measure(
    'install.sh',
    (home, env) => {
      run('git', ['clone', '-q', resolve('.'), checkout(home)], { cwd: home, env })
      run('bash', ['install.sh'], {
        cwd: checkout(home),
        env: { ...env, PORTREEVE_DATA_DIR: join(home, 'data') },
      })
    },
    (home, env) => void spawnSync('bash', ['install.sh', '--stop'], { cwd: checkout(home), env }),
  )
  report.check('the one file is faster', one_file < by_script, (one_file / by_script).toFixed(2))
}
report.end()
