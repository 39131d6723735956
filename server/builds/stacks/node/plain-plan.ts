import { readJson, readToml, textAt } from '../../text-formats.ts'
import { firstOf, skim } from '../../tree-queries.ts'
import type { ChosenApp } from './choose-app.ts'
import type { FrameworkPlan } from './frameworks/framework.ts'
import { configText, uses, type NodeApp } from './manifest.ts'
import { findStart } from './start-command.ts'

/** No framework: a server if anything starts, else a page with assets. */
export function plainPlan(chosen: ChosenApp): FrameworkPlan {
  const { tree } = chosen.app
  const bundled = bundledPage(chosen.app)
  if (bundled !== undefined) return { kind: 'static', build: null, output: bundled, fallback: 'spa' }
  const published = publishedFolder(chosen)
  if (published !== undefined) return { kind: 'static', build: null, output: published, fallback: 'pages' }
  const page = firstOf(tree, ['public/index.html', 'dist/index.html', 'build/index.html', 'index.html'])
  const start = findStart(chosen.app)
  const served =
    /\b(?:serve|http-server|live-server|lite-server|sirv|webpack|rollup|gulp|parcel|esbuild)\b/.test(
      start?.line ?? '',
    ) ||
    (/scripts\.(?:start|dev|serve)/.test(start?.source ?? '') &&
      /^(?:npx )?(?:serve|http-server)\b/.test(chosen.app.manifest.scripts.get('start') ?? ''))
  if (page === undefined && start === undefined && buildsPages(chosen.app))
    return { kind: 'static', build: null, output: 'dist', fallback: 'pages' }
  if (page === undefined || (start !== undefined && !served)) return { kind: 'server', build: null }
  const bundles = chosen.app.manifest.scripts.has('build') && !buildsOnlyAssets(chosen.app)
  const beside = bundles ? 'dist' : '.'
  const output = page.includes('/') ? page.slice(0, page.indexOf('/')) : beside
  // Installed packages are no part of the site, unless its page loads from them.
  const after_build =
    output === '.' && !/node_modules\//.test(skim(tree, page)) ? ['rm -rf node_modules'] : undefined
  return { kind: 'static', build: null, output, fallback: 'spa', after_build }
}

/** A build by a tool whose trade is pages: where it leaves them is looked for afterwards. */
function buildsPages({ manifest }: NodeApp): boolean {
  const build = manifest.scripts.get('build') ?? ''
  return /\b(?:gulp|grunt|broccoli|metalsmith|pug|posthtml|nunjucks\w*|ejs\w*|mustache|handlebars|marked|mjml)\b/.test(
    build,
  )
}

/** A build of style sheets and scripts for a page that stays where it is. */
function buildsOnlyAssets({ manifest }: NodeApp): boolean {
  const build = manifest.scripts.get('build') ?? ''
  return (
    /\b(?:tailwindcss|postcss|sass|lessc|stylus|tsc|esbuild|rollup|terser|uglify\w*|babel|swc|grunt)\b/.test(
      build,
    ) && !/\b(?:cp|cpx|cpy|copyfiles|copy|html)\b/.test(build)
  )
}

/**
 * The folder that the settings for a host of static sites name, when a build fills it and nothing starts a
 * server.
 */
function publishedFolder({ app }: ChosenApp): string | undefined {
  if (!app.manifest.scripts.has('build') || app.manifest.scripts.has('start') || app.root.has('Procfile'))
    return undefined
  const found =
    textAt(readToml(app.root, 'netlify.toml'), 'build', 'publish') ??
    textAt(readJson(app.root, 'vercel.json'), 'outputDirectory') ??
    textAt(readJson(app.root, 'firebase.json'), 'hosting', 'public')
  const folder = found?.replace(/^\.?\/|\/$/g, '')
  return folder !== undefined && /^[\w][\w./-]{0,80}$/.test(folder) && !folder.includes('..')
    ? folder
    : undefined
}

/**
 * The folder that webpack fills for a page: its start script, if any, is the development server that comes
 * with webpack.
 */
function bundledPage(app: NodeApp): string | undefined {
  const [build, start] = ['build', 'start'].map((name) => app.manifest.scripts.get(name))
  if (
    build === undefined ||
    !uses(app, 'webpack-dev-server', '@webpack-cli/serve', 'html-webpack-plugin') ||
    !/\bwebpack\b/.test(build)
  )
    return undefined
  if (start !== undefined && !/\bwebpack(?:-dev-server|\s+(?:serve|server))\b/.test(start)) return undefined
  const written =
    /path\s{0,9}:\s{0,9}[\w.]{1,40}\(\s{0,9}__dirname\s{0,9},\s{0,9}['"]\.?\/?([\w-]{1,60})['"]/.exec(
      configText(app.tree, 'webpack.config') + configText(app.tree, 'webpack.prod'),
    )?.[1]
  return written ?? 'dist'
}
