import { BASE_IMAGES, baseImage } from '../base-images.ts'
import type { SourceTree } from '../plan.ts'
import { skim } from '../tree-queries.ts'
import { javaVersion } from './jvm/versions.ts'
import { TCP, because, nameIn, type Commands, type Stack, type StackContext } from './stack.ts'

const PORT = 3000

/** Clojure with Leiningen or the Clojure tools. */
export const clojure: Stack = {
  name: 'clojure',
  help: 'A project.clj or deps.edn.',
  looked_for: ['project.clj', 'deps.edn'],
  detect: (tree) => tree.has('project.clj') || tree.has('deps.edn') || tree.has('bb.edn'),
  plan: planClojure,
}

function planClojure({ tree, version_request }: StackContext) {
  const lein = tree.has('project.clj')
  const version = javaVersion(tree, version_request)
  const text = `${skim(tree, 'project.clj')}\n${skim(tree, 'deps.edn')}`
  const framework =
    (['luminus', 'pedestal', 'reitit', 'compojure', 'http-kit', 'ring'] as const).find((name) =>
      text.includes(name),
    ) ?? null
  const build = buildLine(tree, text)
  const start = build === null ? sourceStart(text) : 'java $JAVA_OPTS -jar /app/server/app.jar'
  const image = imageFor(lein ? 'lein' : 'tools-deps', version.version)
  return {
    stack: 'clojure',
    framework,
    version: version.version,
    package_manager: lein ? 'lein' : 'clojure',
    install_command: lein ? 'lein deps' : 'clojure -P',
    build_command: build,
    start_command: start,
    release_command: null,
    port: PORT,
    health_check: TCP,
    explanation: [
      ...because('stack', 'clojure', lein ? 'project.clj' : 'deps.edn'),
      ...because('version', version.version, version.source),
      ...because('build_command', build, lein ? 'project.clj' : 'build.clj'),
      ...because('start_command', start, build === null ? 'aliases of deps.edn' : 'the jar of the build'),
      ...because('port', String(PORT), 'default, set as PORT'),
    ],
    layout: (commands: Commands) => ({
      build_image: image,
      runtime_image: /^(?:clojure|clj|lein)\b/.test(commands.start ?? '')
        ? image
        : baseImage('jre', version.version),
      build_env: { LEIN_ROOT: '1' },
      caches: commands.own_start && build !== null ? ['/root/.m2'] : [],
      manifests: [lein ? 'project.clj' : 'deps.edn'],
      install: commands.install,
      build: commands.build,
      after_build:
        commands.own_start && build !== null
          ? [
              'mkdir -p /app/server && cp "$(find target -name \'*.jar\' -type f | xargs -r ls -S | head -n 1)" /app/server/app.jar',
            ]
          : [],
      keep: commands.own_start && build !== null ? [{ from: '/app/server', to: '/app/server' }] : undefined,
      runtime_env: { JAVA_OPTS: '-XX:MaxRAMPercentage=75' },
      start: commands.start,
      port: commands.port,
    }),
  }
}

function buildLine(tree: SourceTree, text: string): string | null {
  if (tree.has('project.clj')) return 'lein uberjar'
  if (!tree.has('build.clj') || !/:build\b/.test(text)) return null
  const tasks = { uber: /\(defn uber\b/, uberjar: /\(defn uberjar\b/ }
  return `clojure -T:build ${nameIn(skim(tree, 'build.clj'), tasks) ?? 'ci'}`
}

/** How an app starts that nothing packs into a jar. */
function sourceStart(text: string): string | null {
  const alias = /:(run|start|main|server|web|run-m)\s{0,9}\{/.exec(text)?.[1]
  if (alias !== undefined) return `clojure -M:${alias}`
  const main = /:main-opts\s{0,9}\[\s{0,9}"-m"\s{1,9}"([\w.-]{1,80})"/.exec(text)?.[1]
  return main === undefined ? null : `clojure -M -m ${main}`
}

function imageFor(tool: string, java: string): string {
  const tag = `temurin-${java}-${tool}`
  const versions: readonly string[] = BASE_IMAGES.clojure.versions
  return baseImage('clojure', versions.includes(tag) ? tag : `temurin-21-${tool}`)
}
