import type { SourceTree } from '../plan.ts'
import { filesWithSuffix, firstLine, skim } from '../tree-queries.ts'
import { toolVersion } from '../versions.ts'
import { compiledStack } from './compiled.ts'

/** Erlang with rebar3: a release where relx is set up, otherwise the application on a plain node. */
export const erlang = compiledStack({
  name: 'erlang',
  help: 'A rebar.config.',
  looked_for: ['rebar.config'],
  detect: (tree) => tree.has('rebar.config'),
  image: 'erlang',
  versions(tree) {
    const minimum = /\{minimum_otp_vsn,\s{0,9}"(\d+)/.exec(skim(tree, 'rebar.config'))?.[1]
    const file = firstLine(tree, '.otp-version')
    return [
      toolVersion(tree, 'erlang'),
      file === undefined ? undefined : { wanted: file, source: '.otp-version' },
      minimum === undefined ? undefined : { wanted: `>=${minimum}`, source: 'rebar.config' },
    ]
  },
  facts(tree) {
    const config = skim(tree, 'rebar.config')
    const release = /\{release,\s{0,40}\{\s{0,9}'?([a-z]\w{0,60})'?/.exec(config)?.[1]
    const profile = /\{profiles,[^]{0,2000}?\{prod,/.test(config) ? 'prod' : 'default'
    const application = applicationOf(tree)
    const start =
      application === undefined
        ? null
        : `erl -noinput -pa /app/_build/${profile}/lib/*/ebin -eval '{ok, _} = application:ensure_all_started(${application})'`
    return {
      framework:
        ['nova', 'cowboy', 'elli', 'yaws', 'mochiweb', 'webmachine'].find((name) =>
          new RegExp(`\\b${name}\\b`).test(config),
        ) ?? null,
      package_manager: 'rebar3',
      install: `rebar3${profile === 'prod' ? ' as prod' : ''} get-deps`,
      build: `rebar3${profile === 'prod' ? ' as prod' : ''} ${release === undefined ? 'compile' : 'release'}`,
      start:
        release === undefined ? start : `/app/_build/${profile}/rel/${release}/bin/${release} foreground`,
      port: 8080,
      source: 'rebar.config',
      manifests: ['rebar.config', 'rebar.lock'].filter((path) => tree.has(path)),
      build_packages: ['git', 'ca-certificates', 'build-essential'],
    }
  },
})

/** The first application of the repository, by the name of its resource file. */
function applicationOf(tree: SourceTree): string | undefined {
  return filesWithSuffix(tree, ['.app.src'], 3)
    .map((path) => /([a-z]\w{0,60})\.app\.src$/.exec(path)?.[1])
    .find((name) => name !== undefined)
}
