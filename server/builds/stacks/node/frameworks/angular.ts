import { majorOf, uses, type NodeApp } from '../manifest.ts'
import { asFields, at, keysAt, readJson, textAt } from '../../../text-formats.ts'
import type { NodeFramework } from './framework.ts'
import { startsServer } from './starts-server.ts'

/**
 * Angular: files, or a server when server-side rendering is set up. `angular.json` says where the output
 * goes.
 */
export const angular: NodeFramework = {
  name: 'angular',
  detect: (app) =>
    uses(app, '@angular/core') &&
    (app.tree.has('angular.json') || app.tree.has('.angular-cli.json') || uses(app, '@angular/cli')) &&
    !uses(app, '@analogjs/platform'),
  plan(app) {
    const { project, output, browser_folder, server } = outputOf(app)
    const node = (majorOf(app, '@angular/core') ?? 99) < 13 ? '16' : undefined
    const build_env = { NG_CLI_ANALYTICS: 'false' }
    if (server) {
      const folder = output ?? `dist/${project}`
      return {
        kind: 'server',
        build: 'ng build',
        start: `node ${folder}/server/server.mjs`,
        own_start: !/serve:ssr/.test(app.manifest.scripts.get('start') ?? ''),
        port: 4000,
        ready_path: '/',
        build_env,
        node,
      }
    }
    // A page that a server of the project's own hands out, usually beside its interface for data.
    if (startsServer(app, 'angular'))
      return { kind: 'server', build: 'ng build', port: 3000, build_env, node }
    const base = output ?? `dist/${project}`
    return {
      kind: 'static',
      build: 'ng build',
      output: browser_folder ? `${base}/browser` : base,
      fallback: 'spa',
      build_env,
      node,
    }
  },
}

function outputOf(app: NodeApp) {
  const workspace = readJson(app.tree, 'angular.json')
  const projects = asFields(at(workspace, 'projects')) ?? {}
  const is_app = (name: string) =>
    (textAt(projects, name, 'projectType') ?? 'application') === 'application' && !name.endsWith('-e2e')
  const declared = textAt(workspace, 'defaultProject')
  const project = declared ?? keysAt(workspace, 'projects').find(is_app) ?? app.manifest.name ?? 'app'
  const target = at(projects, project, 'architect', 'build') ?? at(projects, project, 'targets', 'build')
  const builder = textAt(target, 'builder') ?? ''
  const path = at(target, 'options', 'outputPath')
  const written = typeof path === 'string' ? path : textAt(path, 'base')
  const output =
    written !== undefined && /^[A-Za-z0-9._/@-]{1,120}$/.test(written)
      ? written.replace(/\/+$/, '')
      : undefined
  const custom_browser = typeof path === 'object' && path !== null ? at(path, 'browser') : undefined
  return {
    project: /^[A-Za-z0-9._@-]{1,80}$/.test(project) ? project : 'app',
    output,
    browser_folder: /:application$/.test(builder) && custom_browser !== '',
    server:
      at(target, 'options', 'ssr') !== undefined &&
      at(target, 'options', 'ssr') !== false &&
      textAt(target, 'options', 'outputMode') !== 'static',
  }
}
