import { baseImage } from '../base-images.ts'
import type { SourceTree } from '../plan.ts'
import { filesNamed, skim } from '../tree-queries.ts'
import { chooseVersion, toolVersion, versionFile } from '../versions.ts'
import { nodeAssets } from './node/assets.ts'
import { TCP, because, nameIn, type Commands, type Stack, type StackContext } from './stack.ts'

const PORT = 4000

/** Elixir: a release of Mix, with the runtime it was built on. */
export const elixir: Stack = {
  name: 'elixir',
  help: 'A mix.exs.',
  looked_for: ['mix.exs'],
  detect: (tree) => tree.has('mix.exs'),
  plan: planElixir,
}

function planElixir({ tree, version_request }: StackContext) {
  const mix = skim(tree, 'mix.exs')
  const umbrella = /apps_path:/.test(mix)
  const texts = [
    mix,
    ...(umbrella ? filesNamed(tree, 'mix.exs', 2).map((path) => skim(tree, path)) : []),
  ].join('\n')
  const framework = nameIn(texts, {
    phoenix: /\{:phoenix,/,
    ash: /\{:ash,/,
    plug: /\{:(?:plug_cowboy|bandit|plug),/,
  })
  const buildpack = /^elixir_version\s{0,3}=\s{0,3}"?v?([\d.]{1,12})/m.exec(
    skim(tree, 'elixir_buildpack.config'),
  )?.[1]
  const requested = /elixir:\s{0,5}"([^"\n]{1,40})"/.exec(mix)?.[1]
  const version = chooseVersion('elixir', [
    version_request,
    versionFile(tree, '.elixir-version'),
    toolVersion(tree, 'elixir'),
    buildpack === undefined ? undefined : { wanted: buildpack, source: 'elixir_buildpack.config' },
    requested === undefined ? undefined : { wanted: requested, source: 'mix.exs' },
  ])
  const app = releaseName(mix) ?? 'app'
  // An umbrella without a named release has no single program; Mix starts all of its apps.
  const released = !umbrella || /releases:/.test(mix)
  const phoenix = framework === 'phoenix'
  const ecto = /\{:(?:ecto_sql|phoenix_ecto),/.test(texts)
  const program = `/app/_build/prod/rel/${app}/bin/${app}`
  const mix_start = phoenix ? 'mix phx.server' : 'mix run --no-halt'
  const start = released ? `${program} start` : mix_start
  const build = buildLine(texts, phoenix, released)
  const release = ecto ? migrateLine(tree, mix, released ? program : undefined) : null
  return {
    stack: 'elixir',
    framework,
    version: version.version,
    package_manager: 'mix',
    install_command: 'mix deps.get --only prod && mix deps.compile',
    build_command: build,
    start_command: start,
    release_command: release,
    port: PORT,
    health_check: TCP,
    explanation: [
      ...because('stack', 'elixir', 'mix.exs'),
      ...because('framework', framework, 'mix.exs'),
      ...because('version', version.version, version.source),
      ...because('build_command', build, 'mix.exs'),
      ...because(
        'start_command',
        start,
        released ? 'the release of the build' : 'umbrella without a release',
      ),
      ...because('release_command', release, 'lib/*/release.ex'),
      ...because('port', String(PORT), 'default, set as PORT'),
    ],
    layout(commands: Commands) {
      const image = baseImage('elixir', version.version)
      const environment = {
        MIX_ENV: 'prod',
        LANG: 'C.UTF-8',
        MIX_HOME: '/opt/mix',
        HEX_HOME: '/opt/hex',
      }
      const manifests = tree
        .files()
        .filter((path) =>
          /^(?:mix\.(?:exs|lock)|config\/(?:config|prod)\.exs|apps\/[^/]+\/mix\.exs)$/.test(path),
        )
      return {
        build_image: image,
        // A release carries Erlang, but is linked against the libraries of the image it was built on.
        runtime_image: image,
        build_packages: ['build-essential', 'git', 'ca-certificates'],
        runtime_packages: ['ca-certificates'],
        build_env: environment,
        build_setup: ['mix local.hex --force && mix local.rebar --force'],
        manifests: /path:\s{0,5}"/.test(mix) ? [] : manifests,
        install: commands.install,
        node_assets: tree.has('assets/package.json')
          ? {
              ...nodeAssets(tree.sub('assets'), true)!,
              manifests: [],
              install: 'npm install --prefix assets',
              build: null,
            }
          : nodeAssets(tree),
        before_build: ['mix compile'],
        build: commands.build,
        keep:
          commands.own_start && released
            ? [{ from: `/app/_build/prod/rel/${app}`, to: `/app/_build/prod/rel/${app}` }]
            : [
                { from: '/app', to: '/app' },
                { from: '/opt/mix', to: '/opt/mix' },
              ],
        runtime_env: { ...environment, PHX_SERVER: 'true', PHX_HOST: 'localhost' },
        start: commands.start,
        port: commands.port,
      }
    },
  }
}

function buildLine(texts: string, phoenix: boolean, released: boolean): string {
  const lines: string[] = []
  if (/"?assets\.deploy"?:/.test(texts)) lines.push('mix assets.deploy')
  else if (phoenix) lines.push('mix phx.digest')
  if (released) lines.push('mix release --overwrite')
  return lines.join(' && ') || 'mix compile'
}

/**
 * Mix migrates where it is part of the image; a release does by a module of the app.
 * @param program The program of the release; undefined where Mix starts the app.
 */
function migrateLine(tree: SourceTree, mix: string, program: string | undefined): string | null {
  if (program === undefined) return 'mix ecto.migrate'
  const module = /defmodule ([A-Z]\w{0,60})\.MixProject/.exec(mix)?.[1]
  const migrates = tree.files().some((path) => /^lib\/\w+\/release\.ex$/.test(path))
  return migrates && module !== undefined ? `${program} eval ${module}.Release.migrate` : null
}

function releaseName(mix: string): string | undefined {
  return (
    /releases:\s{0,9}\[\s{0,40}([a-z][a-z0-9_]{0,60}):/.exec(mix)?.[1] ??
    /\bapp:\s{0,5}:([a-z][a-z0-9_]{0,60})/.exec(mix)?.[1]
  )
}
