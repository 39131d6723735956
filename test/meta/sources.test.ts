import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import ts from 'typescript'
import { importsOf, readSources, type SourceFile } from './sources.ts'

const server = readSources(['server', 'routes', 'tasks', 'cli'])
const all = [...server, ...readSources(['test', 'scripts', 'bench'])]
const lines = (text: string) => text.split('\n').length - 1

/**
 * Functions of more than 70 lines of their own: services whose methods are a line each, and layouts
 * that are one table. None may be added.
 */
const LONG_FUNCTIONS = [
  'server/backups/domain.ts createBackups',
  'server/builds/stacks/node/layout.ts nodeLayout',
  'server/builds/stacks/ruby.ts frameworkPlan',
  'server/builds/stacks/ruby.ts rubyLayout',
  'server/certificates/service.ts createCertificates',
  'server/databases/assembly.ts createDatabasesDomain',
  'server/deployments/assembly.ts createDeploymentsDomain',
  'server/domains/service.ts createDomains',
  'server/identity/service.ts createIdentity',
  'server/platform/engine/build/buildkit.ts buildWithBuildKit',
  'server/platform/ingress/haproxy.ts createHaproxyIngress',
  'server/volumes/service.ts createVolumes',
]
const MOST_OWN_LINES = 70

/** The functions of a file, each with its lines that lie in no function inside it. */
function functionsOf({ path, text }: SourceFile): { name: string; own_lines: number }[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line
  const found: { name: string; own_lines: number }[] = []
  /** Lines below a node that belong to functions, each of which is noted. */
  const visit = (node: ts.Node): number => {
    let inside = 0
    ts.forEachChild(node, (child) => {
      inside += visit(child)
    })
    if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) return inside
    const length = lineOf(node.end) - lineOf(node.getStart()) + 1
    const named = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : undefined)
    found.push({ name: `${path} ${named?.getText() ?? '(without a name)'}`, own_lines: length - inside })
    return length - 1
  }
  visit(source)
  return found
}

describe('every source file', () => {
  it('is small: at most 350 lines, a route at most 40', () => {
    const large = server
      .filter(({ path, text }) => lines(text) > (path.startsWith('routes/') ? 40 : 350))
      .map(({ path }) => path)
    expect(large).toEqual([])
    const sizes = server.map(({ text }) => lines(text)).sort((a, b) => a - b)
    expect(sizes[Math.floor(sizes.length / 2)]).toBeLessThan(80)
  })
  it('has functions of at most 70 lines, what lies in functions inside them not counted', () => {
    const long = server.flatMap(functionsOf).filter(({ own_lines }) => own_lines > MOST_OWN_LINES)
    expect(long.map(({ name }) => name).sort()).toEqual(LONG_FUNCTIONS)
  })
  it('takes no duration from the wall clock, which may be set meanwhile', () => {
    const wall =
      /\b(?:duration|latency|waited|elapsed|took)_(?:ms|s)\b.*(?:clock\.now|Date\.now|Date\.parse)\(/
    const found = server.flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, index) => (wall.test(line) ? [`${path}:${index + 1}`] : [])),
    )
    expect(found).toEqual([])
  })
  it('lies in a folder: at most three are loose in server/', () => {
    const loose = server.filter(({ path }) => /^server\/[^/]+$/.test(path))
    expect(loose.map(({ path }) => path)).toEqual([
      'server/endpoint.ts',
      'server/modules.ts',
      'server/running.ts',
    ])
  })
  it('has lines that fit a screen: 95 of 100 within 100 columns, 99 within 120', () => {
    const widths = all
      .flatMap(({ text }) => text.split('\n').map((line) => line.length))
      .sort((a, b) => a - b)
    const widest = (share: number) => widths[Math.floor(widths.length * share)] ?? 0
    expect(widest(0.95)).toBeLessThanOrEqual(100)
    expect(widest(0.99)).toBeLessThanOrEqual(120)
  })
  it('has a name in kebab case that says what is in it', () => {
    const odd = server.filter(
      ({ path }) => !path.startsWith('routes/') && !/^[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.ts$/.test(basename(path)),
    )
    expect(odd.map(({ path }) => path)).toEqual([])
    // The framework calls one of them so, and npm is a package manager.
    const vague = all.filter(({ path }) =>
      /(^|[/-])(managers?|helpers?|utils?|utilities|misc|handlers?)([.-])/.test(
        path.replace(/error-handler|package-manager/, ''),
      ),
    )
    expect(vague.map(({ path }) => path)).toEqual([])
  })
  it('is finished: nothing is left to do, skipped or tried alone', () => {
    const marks = new RegExp(
      ['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'].map((word) => `\\b${word}\\b`).join('|'),
    )
    expect(all.filter(({ text }) => marks.test(text)).map(({ path }) => path)).toEqual([])
    const alone = all.filter(
      ({ path, text }) => path.endsWith('.test.ts') && /\b(it|describe|test)\.(only|skip|todo)\(/.test(text),
    )
    expect(alone.map(({ path }) => path)).toEqual([])
  })
  it('runs under plain type stripping', () => {
    const odd = server.filter(({ text }) =>
      /^\s*(export\s+)?(const\s+)?enum\s|^\s*(export\s+)?namespace\s|constructor\(\s*(private|public|readonly|protected)\s/m.test(
        text,
      ),
    )
    expect(odd.map(({ path }) => path)).toEqual([])
  })
})

describe('programs on the host', () => {
  it('are started in one place only', () => {
    const starters = server.filter((source) =>
      importsOf(source).some(({ specifier }) => /^(node:)?child_process$/.test(specifier)),
    )
    expect(starters.map(({ path }) => path)).toEqual(['server/kernel/process.ts'])
  })
  it('never go through a shell', () => {
    const shells = server.filter(({ text }) => /shell:\s*(true|['"])|\bexecSync\(|\bspawnSync\(/.test(text))
    expect(shells.map(({ path }) => path)).toEqual([])
  })
  it('and commands of users reach a shell only inside their own containers', () => {
    const users = server
      .filter(({ text }) => /['"](\/bin\/)?(ba|da)?sh['"],\s*['"]-l?c['"]/.test(text))
      .map(({ path }) => path)
    // A line in a Dockerfile, the start command of an app's container, and one-off commands in it.
    // Scripts for databases and terminals are constants; what varies reaches them as variables and
    // arguments.
    expect(users).toEqual([
      'server/builds/commands.ts',
      'server/builds/render-dockerfile.ts',
      'server/compose/health.ts',
      'server/databases/commands.ts',
      'server/databases/engines/clickhouse.ts',
      'server/databases/engines/mongodb.ts',
      'server/databases/engines/mysql.ts',
      'server/databases/engines/redis-family.ts',
      'server/platform/engine/containers/body.ts',
      'server/platform/engine/containers/terminal.ts',
    ])
  })
  it('do not exist for code that is made from text', () => {
    expect(server.filter(({ text }) => /\beval\(|new Function\(/.test(text)).map(({ path }) => path)).toEqual(
      [],
    )
  })
})

describe('the role of a caller', () => {
  it('is read in one place only, which knows how API keys are narrowed', () => {
    const readers = server.filter(({ text }) =>
      /\bactor\b[!?]?\.\s*role\b|\{[^{}]*\brole\b[^{}]*\} = actor\b/.test(text),
    )
    expect(readers.map(({ path }) => path)).toEqual(['server/kernel/access.ts'])
  })
})

describe('the database', () => {
  it('is asked with bound values: no value is written into a statement', () => {
    // Names of tables and columns may be composed; they come from the code. Values are ?, @name or
    // json_each(?).
    const quoted = server.filter(({ text }) => /(sql|prepare|exec)\(\s*`[^`]*'\$\{/.test(text))
    expect(quoted.map(({ path }) => path)).toEqual([])
  })
})
