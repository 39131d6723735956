import { firstOf, skim } from '../../../tree-queries.ts'
import { uses, type NodeApp } from '../manifest.ts'
import type { FrameworkPlan, NodeFramework } from './framework.ts'

/** A server framework whose facts fit on one line. */
interface ServerFacts extends Omit<FrameworkPlan, 'kind'> {
  name: string
  packages: readonly string[]
}

/** Larger frameworks first: most of them are built on the smaller ones below, Express last of all. */
const SERVERS: readonly ServerFacts[] = [
  {
    name: 'adonis',
    packages: ['@adonisjs/core'],
    build: 'node ace build',
    start: 'node build/bin/server.js',
    own_start: true,
    port: 3333,
    release: 'node build/ace.js migration:run --force',
  },
  {
    name: 'strapi',
    packages: ['@strapi/strapi', 'strapi'],
    build: 'strapi build',
    start: 'strapi start',
    own_start: true,
    port: 1337,
    ready_path: '/_health',
  },
  {
    name: 'keystone',
    packages: ['@keystone-6/core'],
    build: 'keystone build',
    start: 'keystone start',
    port: 3000,
  },
  {
    name: 'directus',
    packages: ['directus'],
    build: null,
    start: 'directus start',
    port: 8055,
    ready_path: '/server/ping',
    release: 'npx directus bootstrap',
  },
  {
    name: 'medusa',
    packages: ['@medusajs/medusa'],
    build: 'medusa build',
    start: 'medusa start',
    port: 9000,
    ready_path: '/health',
  },
  {
    name: 'redwood',
    packages: ['@redwoodjs/core'],
    build: 'rw build',
    start: 'rw serve',
    port: 8910,
  },
  {
    name: 'waku',
    packages: ['waku'],
    build: 'waku build',
    start: 'waku start',
    port: 8080,
    ready_path: '/',
  },
  {
    name: 'modernjs',
    packages: ['@modern-js/app-tools'],
    build: 'modern build',
    start: 'modern serve',
    own_start: true,
    port: 8080,
    ready_path: '/',
  },
  {
    name: 'marko-run',
    packages: ['@marko/run'],
    build: 'marko-run build',
    start: 'node dist/index.mjs',
    port: 3000,
    ready_path: '/',
  },
  {
    name: 'one',
    packages: ['one'],
    build: 'one build',
    start: 'one serve --port $PORT --host 0.0.0.0',
    own_start: true,
    port: 3000,
    ready_path: '/',
  },
  {
    name: 'sapper',
    packages: ['sapper'],
    build: 'sapper build',
    start: 'node __sapper__/build',
    port: 3000,
    ready_path: '/',
    node: '16',
  },
  { name: 'blitz', packages: ['blitz'], build: 'blitz build', start: 'blitz start', port: 3000 },
  { name: 'feathers', packages: ['@feathersjs/feathers'], port: 3030 },
  { name: 'sails', packages: ['sails'], start: 'node app.js', port: 1337 },
  { name: 'loopback', packages: ['@loopback/core'], port: 3000, ready_path: '/ping' },
  { name: 'xmcp', packages: ['xmcp'], build: 'xmcp build', start: 'node dist/http.js', port: 3001 },
  {
    name: 'vinxi',
    packages: ['vinxi'],
    build: 'vinxi build',
    start: 'vinxi start',
    port: 3000,
    ready_path: '/',
  },
  {
    name: 'mastra',
    packages: ['mastra'],
    build: 'mastra build',
    start: 'node .mastra/output/index.mjs',
    port: 4111,
  },
  { name: 'elysia', packages: ['elysia'], port: 3000 },
  { name: 'hono', packages: ['hono'], port: 3000 },
  { name: 'fastify', packages: ['fastify', '@fastify/autoload'], port: 3000 },
  { name: 'hapi', packages: ['@hapi/hapi', 'hapi'], port: 3000 },
  { name: 'koa', packages: ['koa'], port: 3000 },
  {
    name: 'apollo',
    packages: ['@apollo/server', 'apollo-server', 'apollo-server-express'],
    port: 4000,
  },
  { name: 'graphql-yoga', packages: ['graphql-yoga'], port: 4000 },
  { name: 'restify', packages: ['restify'], port: 3000 },
  { name: 'polka', packages: ['polka'], port: 3000 },
  { name: 'h3', packages: ['h3', 'listhen'], port: 3000 },
  { name: 'express', packages: ['express', '@types/express'], port: 3000 },
  { name: 'socketio', packages: ['socket.io'], port: 3000 },
  { name: 'micro', packages: ['micro'], start: 'micro', port: 3000 },
]

/** The table as frameworks. */
export const servers: readonly NodeFramework[] = SERVERS.map(({ name, packages, ...facts }) => ({
  name,
  detect: (app: NodeApp) => uses(app, ...packages),
  plan: (): FrameworkPlan => ({ kind: 'server', ...facts }),
}))

/** Functions behind the server of their framework, which wants to know by name what it serves. */
export const functionsFramework: NodeFramework = {
  name: 'functions-framework',
  detect: (app) => uses(app, '@google-cloud/functions-framework'),
  plan(app) {
    const source = skim(
      app.tree,
      firstOf(app.tree, [
        app.manifest.main ?? 'index.js',
        'index.js',
        'function.js',
        'src/index.ts',
        'index.ts',
      ]),
    )
    const name =
      /\b(?:http|cloudEvent)\(\s{0,20}['"]([\w-]{1,80})['"]/.exec(source)?.[1] ??
      /\bexports\.(\w{1,80})\s{0,9}=/.exec(source)?.[1] ??
      'function'
    return {
      kind: 'server',
      start: `functions-framework --target=${name} --port=$PORT`,
      port: 8080,
    }
  },
}

/** Qwik City: a server when one of its server adapters was added, files otherwise. */
export const qwik: NodeFramework = {
  name: 'qwik',
  detect: (app) => uses(app, '@builder.io/qwik-city', '@qwik.dev/router'),
  plan(app) {
    const adapter = ['express', 'fastify', 'node-server'].find((name) =>
      app.tree.files().some((path) => path.startsWith(`adapters/${name}/`)),
    )
    if (adapter === undefined)
      return {
        kind: 'static',
        build: 'qwik build',
        output: 'dist',
        fallback: 'pages',
        own_start: true,
      }
    return {
      kind: 'server',
      build: 'qwik build',
      start: app.manifest.scripts.get('serve') ?? `node server/entry.${adapter}.js`,
      own_start: true,
      port: 3000,
      ready_path: '/',
    }
  },
}
