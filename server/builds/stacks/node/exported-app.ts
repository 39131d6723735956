import { firstOf, skim } from '../../tree-queries.ts'
import type { ChosenApp } from './choose-app.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import { findStart } from './start-command.ts'

/** Frameworks whose apps some platforms serve without being told to listen. */
const SERVED = new Set(['express', 'hono', 'h3'])
const MAKES = /\bexpress(?:['"]\))?\(\)|\bnew (?:Hono|OpenAPIHono|H3)\b|\bcreateApp\(/
const EXPORTS =
  /(?:^|;)[ \t]*(?:export[ \t]+default\b|module\.exports[ \t]*=|exports\.default[ \t]*=|export[ \t]*=)/m
/** What an app does that serves by itself, or leaves that to what it starts. */
const SERVES =
  /\.listen\(|\bserve\(|\bServer\(|createServer\(|\bBun\.serve\b|\bDeno\.serve\b|\bfork\(|\brequire\.main\b/
/** Where a program lies that starts an app which another file exports. */
const STARTERS = ['bin/www', 'bin/www.js', 'bin/www.ts', 'bin/server.js']

/**
 * How an app is served that its file only exports: run as it is, the program would end at once. By its own
 * starter where it has one, else by a server that takes any handler of requests.
 */
export function exportedApp({ app, framework }: ChosenApp, facts: FrameworkPlan): FrameworkPlan {
  if (facts.kind === 'static' || facts.start !== undefined || !SERVED.has(framework?.name ?? '')) return facts
  const file = /^node (?:\.\/)?([\w./-]{1,200}\.[cm]?[jt]s)$/.exec(findStart(app)?.line ?? '')?.[1]
  const text = skim(app.tree, file)
  if (file === undefined || !MAKES.test(text) || !EXPORTS.test(text) || SERVES.test(text)) return facts
  const starter = firstOf(app.tree, STARTERS)
  if (starter !== undefined) return { ...facts, start: `node ${starter}`, own_start: true }
  return {
    ...facts,
    start: `srvx serve --prod --host 0.0.0.0 --port $PORT --entry ./${file}`,
    programs: ['srvx@1'],
    own_start: true,
  }
}
