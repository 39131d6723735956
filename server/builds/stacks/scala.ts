import { baseImage } from '../base-images.ts'
import type { SourceTree } from '../plan.ts'
import { filesIn, skim } from '../tree-queries.ts'
import { jvmFramework } from './jvm/frameworks.ts'
import { javaVersion } from './jvm/versions.ts'
import { TCP, because, nameIn, type Commands, type Stack, type StackContext } from './stack.ts'

const SBT = '1.11.7'
const PORT = 9000
/** The script of its makers, which fetches the version that `.mill-version` or the build file names. */
const MILL = [
  'curl -fsSL -o /usr/local/bin/mill https://raw.githubusercontent.com/lefou/millw/main/millw && chmod 755 /usr/local/bin/mill',
]

/** What moves the result of each way to package to the place that it starts from. */
const COLLECT = {
  stage:
    'mkdir -p /app/server && cp -R $(ls -d target/universal/stage */target/universal/stage 2>/dev/null | head -n 1)/. /app/server/ && ln -s "$(ls -d /app/server/bin/* | grep -v \'[.]bat$\' | head -n 1)" /app/server/start',
  mill: 'mkdir -p /app/server && cp "$(find out -path "*assembly.dest/out.jar" | head -n 1)" /app/server/app.jar',
  assembly:
    "mkdir -p /app/server && cp \"$(find . -path '*/target/*' -name '*assembly*.jar' | head -n 1)\" /app/server/app.jar",
}

/** Scala with sbt: the launcher finds the version of sbt that the project names. */
export const scala: Stack = {
  name: 'scala',
  help: 'A build.sbt.',
  looked_for: ['build.sbt', 'project/build.properties'],
  detect: (tree) =>
    tree.has('build.sbt') ||
    tree.has('project/build.properties') ||
    tree.has('build.sc') ||
    tree.has('build.mill') ||
    (filesIn(tree).some((path) => path.endsWith('.scala')) && !tree.has('package.json')),
  plan: planScala,
}

function planScala({ tree, version_request }: StackContext) {
  const version = javaVersion(tree, version_request)
  const text = `${skim(tree, 'build.sbt')}\n${skim(tree, 'project/plugins.sbt')}\n${skim(tree, 'project/Dependencies.scala')}`
  const framework =
    jvmFramework(text) ??
    nameIn(text, { 'akka-http': /akka-http|pekko-http/, http4s: /http4s/, 'zio-http': /zio-http/ })
  const mill = usesMill(tree)
  const packaging = packagingOf(tree, text)
  const build = mill ? `${millOf(tree)} -i __.assembly` : `sbt -batch ${packaging ?? 'package'}`
  const start = startLine(packaging, framework)
  return {
    stack: 'scala',
    framework,
    version: version.version,
    package_manager: mill ? 'mill' : 'sbt',
    install_command: mill ? null : 'sbt -batch update',
    build_command: build,
    start_command: start,
    release_command: null,
    port: PORT,
    health_check: TCP,
    explanation: [
      ...because('stack', 'scala', 'build.sbt'),
      ...because('framework', framework, 'build.sbt'),
      ...because('version', version.version, version.source),
      ...because('build_command', build, packaging === 'stage' ? 'sbt-native-packager' : 'build.sbt'),
      ...because('start_command', start, 'build.sbt'),
      ...because('port', String(PORT), 'default, set as PORT'),
    ],
    layout(commands: Commands) {
      const image = baseImage('jdk', version.version)
      const needs_sbt = /^(?:\S+=\S+\s+)*sbt\b/.test(commands.start ?? '')
      const setup = mill
        ? MILL
        : [
            `curl -fsSL https://github.com/sbt/sbt/releases/download/v${SBT}/sbt-${SBT}.tgz | tar -xz -C /opt && ln -s /opt/sbt/bin/sbt /usr/local/bin/sbt`,
          ]
      return {
        build_image: image,
        runtime_image: needs_sbt ? image : baseImage('jre', version.version),
        build_packages: ['curl', 'ca-certificates'],
        build_setup: setup,
        runtime_setup: needs_sbt
          ? [
              'apt-get update && apt-get install -y --no-install-recommends curl ca-certificates && rm -rf /var/lib/apt/lists',
              ...setup,
            ]
          : [],
        caches: needs_sbt ? [] : ['/root/.sbt', '/root/.ivy2'],
        build_env: { SBT_OPTS: '-Xmx1g -Dsbt.ci=true' },
        manifests: tree
          .files()
          .filter((path) =>
            /^(?:build\.sbt|project\/[^/]+\.(?:sbt|scala|properties)|\.sbtopts|\.jvmopts)$/.test(path),
          ),
        install: commands.install,
        build: commands.build,
        after_build: commands.own_start && packaging !== undefined ? [COLLECT[packaging]] : [],
        keep: commands.own_start && !needs_sbt ? [{ from: '/app/server', to: '/app/server' }] : undefined,
        runtime_env: { JAVA_OPTS: '-XX:MaxRAMPercentage=75' },
        start: commands.start,
        port: commands.port,
      }
    },
  }
}

/** What packs the app; undefined without a plugin that does. */
function packagingOf(tree: SourceTree, text: string): keyof typeof COLLECT | undefined {
  const packager =
    /sbt-native-packager|JavaAppPackaging|PlayScala|PlayJava|sbt-heroku|playframework|com\.typesafe\.play"/
  if (packager.test(text) || skim(tree, 'Procfile').includes('target/universal/stage/')) return 'stage'
  if (usesMill(tree)) return 'mill'
  return /sbt-assembly/.test(text) ? 'assembly' : undefined
}

function startLine(packaging: keyof typeof COLLECT | undefined, framework: string | null): string {
  // Without a packaging plugin only sbt knows the class path; then it starts the app.
  if (packaging === undefined) return 'sbt -batch run'
  if (packaging !== 'stage') return 'java $JAVA_OPTS -jar /app/server/app.jar'
  return `/app/server/start${framework === 'play' ? ' -Dhttp.port=$PORT -Dpidfile.path=/dev/null' : ''}`
}

function usesMill(tree: SourceTree): boolean {
  return tree.has('build.mill') || tree.has('build.sc')
}

function millOf(tree: SourceTree): string {
  return tree.has('mill') ? 'sh ./mill' : 'mill'
}
