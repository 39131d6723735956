import { baseImage } from '../base-images.ts'
import { shellWord } from '#server/kernel/shell-word'
import type { HealthCheckPlan, SourceTree } from '../plan.ts'
import { filesNamed, filesWithSuffix, folderOf, joinPath, skim } from '../tree-queries.ts'
import type { CheckedLine } from '../checks.ts'
import { BASE_IMAGES } from '../base-images.ts'
import { jvmFramework, portSettings } from './jvm/frameworks.ts'
import { javaVersion } from './jvm/versions.ts'
import { TCP, because, type Commands, type Stack, type StackContext } from './stack.ts'

const GRADLE_FILES = ['build.gradle', 'build.gradle.kts', 'settings.gradle', 'settings.gradle.kts', 'gradlew']
const PORT = 8080

function stackFor(name: 'java' | 'kotlin', help: string): Stack {
  return {
    name,
    help,
    looked_for: ['pom.xml', 'build.gradle', 'build.gradle.kts'],
    detect: (tree) => isJvm(tree) && (name === 'kotlin') === isKotlin(tree),
    plan: (context) => planJvm(context, name),
  }
}

/** Java with Maven or Gradle. */
export const java = stackFor('java', 'A pom.xml or build.gradle.')
/** The same builds with Kotlin sources. */
export const kotlin = stackFor('kotlin', 'A pom.xml or build.gradle, and sources in Kotlin.')

function isJvm(tree: SourceTree): boolean {
  return ['pom.xml', 'pom.groovy', 'pom.yml', 'mvnw', ...GRADLE_FILES].some((path) => tree.has(path))
}

/** Kotlin when its sources outnumber Java's; Gradle scripts in Kotlin do not count. */
function isKotlin(tree: SourceTree): boolean {
  const count = (suffix: string) => tree.files().filter((path) => path.endsWith(suffix)).length
  const kotlin_files = count('.kt')
  return kotlin_files > 0 && kotlin_files > count('.java')
}

interface JvmBuild {
  tool: 'maven' | 'gradle'
  framework: string | null
  /** Module of a multi-module project that makes the app; the root is the empty string. */
  module: string
  build: string
  /** Folder with the jars, below the repository. */
  output: string
  image: string
  war: boolean
}

function planJvm({ tree, version_request }: StackContext, stack: 'java' | 'kotlin') {
  const version = javaVersion(tree, version_request)
  const build =
    tree.has('pom.xml') || (tree.has('mvnw') && !GRADLE_FILES.some((path) => tree.has(path)))
      ? mavenBuild(tree, version.version)
      : gradleBuild(tree, version.version)
  const start = startLine(build)
  return {
    stack,
    framework: build.framework,
    version: version.version,
    package_manager: build.tool,
    install_command: null,
    build_command: build.build,
    start_command: start,
    release_command: null,
    port: PORT,
    health_check: health(tree, build.framework),
    explanation: [
      ...because('stack', stack, build.tool === 'maven' ? 'pom.xml' : 'build.gradle'),
      ...because('framework', build.framework, build.tool === 'maven' ? 'pom.xml' : 'build.gradle'),
      ...because('version', version.version, version.source),
      ...because('build_command', build.build, build.module === '' ? build.tool : `module ${build.module}`),
      ...because('start_command', start, 'the jar of the build'),
      ...because('port', String(PORT), 'default, set as PORT'),
    ],
    layout: (commands: Commands) => jvmLayout(tree, build, version.version, commands),
  }
}

function mavenBuild(tree: SourceTree, version: string): JvmBuild {
  const poms = filesNamed(tree, 'pom.xml', 2)
  const text = poms.map((path) => tree.read(path) ?? '').join('\n')
  const framework = jvmFramework(text)
  const root = tree.read('pom.xml') ?? ''
  const modules = /<modules>/.test(root)
  const app = modules
    ? poms
        .map(folderOf)
        .find(
          (folder) =>
            folder !== '' &&
            /(?:spring-boot|quarkus|micronaut|shade|assembly)-?(?:maven-)?plugin|<packaging>war</.test(
              tree.read(`${folder}/pom.xml`) ?? '',
            ),
        )
    : undefined
  const module = app ?? ''
  const build = `mvn --batch-mode --no-transfer-progress -DskipTests package${module === '' ? '' : ` -pl ${shellWord(module)} -am`}`
  const war =
    /<packaging>war<\/packaging>/.test(tree.read(joinPath(module, 'pom.xml')) ?? '') &&
    framework !== 'spring-boot'
  return {
    tool: 'maven',
    framework,
    module,
    build,
    output: joinPath(module, 'target'),
    image: baseImage('maven', version),
    war,
  }
}

function gradleBuild(tree: SourceTree, version: string): JvmBuild {
  const scripts = filesWithSuffix(tree, ['build.gradle', 'build.gradle.kts', 'libs.versions.toml'], 2)
  const text = scripts.map((path) => skim(tree, path)).join('\n')
  const framework = jvmFramework(text)
  const applies = (folder: string) => {
    const script =
      skim(tree, joinPath(folder, 'build.gradle')) + skim(tree, joinPath(folder, 'build.gradle.kts'))
    return (
      /org\.springframework\.boot|id[ (]['"]?application|\bapplication\b|io\.ktor\.plugin|io\.micronaut\.application|io\.quarkus|shadow|ktor/.test(
        script,
      ) && !/apply false/.test(script.split('\n').find((line) => line.includes('springframework.boot')) ?? '')
    )
  }
  const folders = scripts.map(folderOf).filter((folder) => folder !== 'gradle' && folder !== 'buildSrc')
  const module =
    applies('') || !folders.some((folder) => folder !== '' && applies(folder))
      ? ''
      : folders.find((folder) => folder !== '' && applies(folder))!
  const own = skim(tree, joinPath(module, 'build.gradle')) + skim(tree, joinPath(module, 'build.gradle.kts'))
  const wrapper =
    tree.has('gradlew') &&
    tree.has('gradle/wrapper/gradle-wrapper.jar') &&
    tree.has('gradle/wrapper/gradle-wrapper.properties')
  const project = module === '' ? '' : `:${module.replaceAll('/', ':')}:`
  const task = shellWord(`${project}${gradleTask(own, framework)}`)
  const build = `${wrapper ? 'sh ./gradlew' : 'gradle'} ${task} --no-daemon -x test`
  const image = wrapper ? baseImage('jdk', version) : gradleImage(tree, version)
  return {
    tool: 'gradle',
    framework,
    module,
    build,
    output: joinPath(module, 'build'),
    image,
    war: false,
  }
}

/** The task that leaves what runs, by what the build script applies. */
function gradleTask(script: string, framework: string | null): string {
  if (/\btask stage\b|register\(['"]stage|tasks\.stage/.test(script)) return 'stage'
  if (framework === 'spring-boot' || framework === 'jhipster') return 'bootJar'
  if (/shadow/.test(script)) return 'shadowJar'
  if (/plugins\.ktor|io\.ktor\.plugin/.test(script)) return 'buildFatJar'
  if (framework === 'quarkus') return 'quarkusBuild'
  return /\bapplication\b/.test(script) ? 'installDist' : 'build'
}

/** Gradle's own version decides which Java it can run on, and build scripts fit one major of it. */
function gradleImage(tree: SourceTree, java_version: string): string {
  const major = /gradle-(\d+)\./.exec(skim(tree, 'gradle/wrapper/gradle-wrapper.properties'))?.[1] ?? '8'
  const versions: readonly string[] = BASE_IMAGES.gradle.versions
  const exact = versions.find((candidate) => candidate === `${major}-jdk${java_version}`)
  return baseImage(
    'gradle',
    exact ??
      versions.find((candidate) => candidate.startsWith(`${major}-`)) ??
      versions.find((candidate) => candidate.endsWith(`-jdk${java_version}`)),
  )
}

/**
 * The jar has the project's name and version in it, so the build leaves it at a fixed place, see `collect`.
 */
function startLine(build: JvmBuild): string {
  if (build.war) return 'java $JAVA_OPTS -jar /app/server/webapp-runner.jar --port $PORT /app/server/app.war'
  const properties = build.framework === 'dropwizard' ? ' server' : ''
  return `java $JAVA_OPTS -jar /app/server/app.jar${properties}`
}

function health(tree: SourceTree, framework: string | null): HealthCheckPlan {
  if (framework === 'quarkus' && /smallrye-health/.test(skim(tree, 'pom.xml')))
    return { type: 'http', path: '/q/health/ready' }
  return TCP
}

/**
 * Copies what runs to `/app/server`, whatever the build named it: Quarkus's folder, a distribution, or the
 * largest jar.
 */
function collect(build: JvmBuild): CheckedLine[] {
  return collectLines(build).map((line) => ({ line, ...leftNo(build.war ? 'war' : 'jar', build.output) }))
}

const leftNo = (what: string, output: string) => ({
  otherwise: `The build left no ${what} in \`${output}\`.`,
  hint: 'Look at the build log for what was packaged, and where; set the build and the start command of the app.',
})

function collectLines(build: JvmBuild): string[] {
  const { output } = build
  const jars = `$(find ${shellWord(output)} ${shellWord(`${output}/libs`)} -maxdepth 1 -name '*.jar' ! -name '*-plain.jar' ! -name '*-sources.jar' ! -name '*-javadoc.jar' ! -name 'original-*' -type f 2>/dev/null | xargs -r ls -S | head -n 1)`
  const runner =
    'https://repo1.maven.org/maven2/com/heroku/webapp-runner/10.1.42.0/webapp-runner-10.1.42.0.jar'
  if (build.war)
    return [
      'mkdir -p /app/server',
      `cp $(find ${shellWord(output)} -maxdepth 1 -name '*.war' | head -n 1) /app/server/app.war`,
      `cp ${shellWord(output)}/dependency/webapp-runner.jar /app/server/ 2>/dev/null || curl -fsSL -o /app/server/webapp-runner.jar ${runner}`,
    ]
  return [
    `mkdir -p /app/server && if [ -d ${shellWord(`${output}/quarkus-app`)} ]; then cp -R ${shellWord(`${output}/quarkus-app`)}/. /app/server/ && mv /app/server/quarkus-run.jar /app/server/app.jar; else jar=${jars} && test -n "$jar" && cp "$jar" /app/server/app.jar && { [ ! -d ${shellWord(`${output}/lib`)} ] || cp -R ${shellWord(`${output}/lib`)} /app/server/lib; }; fi`,
  ]
}

function collectDistribution({ output }: JvmBuild): CheckedLine[] {
  const folder = `${output}/install`
  const line = `mkdir -p /app/server && cp -R ${shellWord(folder)}/*/. /app/server/ && ln -s "$(ls -d /app/server/bin/* | grep -v '[.]bat$' | head -n 1)" /app/server/start`
  return [{ line, ...leftNo('distribution', folder) }]
}

/** Puts a wrapper in place that calls the image's own Gradle or Maven, where a command asks for one that is not there. */
function wrapperLines(
  tree: SourceTree,
  { tool, image }: JvmBuild,
  { install, build, start }: Commands,
): string[] {
  const script = tool === 'gradle' ? 'gradlew' : 'mvnw'
  const called = [install, build, start].some((line) =>
    new RegExp(`(?:^|[\\s./])${script}\\b`).test(line ?? ''),
  )
  if (!called || image.startsWith('eclipse') || (tool === 'maven' && tree.has('mvnw'))) return []
  const program = tool === 'gradle' ? 'gradle' : 'mvn'
  return [`printf '#!/bin/sh\\nexec ${program} "$@"\\n' > ${script} && chmod +x ${script}`]
}

function jvmLayout(tree: SourceTree, build: JvmBuild, version: string, commands: Commands) {
  const maven = build.tool === 'maven'
  const manifests = tree
    .files()
    .filter((path) =>
      maven
        ? /(?:^|\/)pom\.xml$|^\.mvn\//.test(path)
        : /(?:^|\/)(?:(?:build|settings)\.gradle(?:\.kts)?|gradle\.properties|libs\.versions\.toml)$|^gradlew$|^gradle\/wrapper\/|^buildSrc\//.test(
            path,
          ),
    )
  const warm = maven
    ? 'mvn --batch-mode --no-transfer-progress dependency:go-offline -DskipTests || true'
    : `${build.image.startsWith('eclipse') ? 'sh ./gradlew' : 'gradle'} dependencies --no-daemon || true`
  const builds_at_start = /^(?:\S+=\S+\s+)*(?:\.\/)?(?:mvnw?|gradlew?|sh \.\/gradlew)\b/.test(
    commands.start ?? '',
  )
  const distribution = build.tool === 'gradle' && /installDist/.test(build.build)
  const collected = distribution ? collectDistribution(build) : collect(build)
  return {
    build_image: build.image,
    runtime_image: builds_at_start ? build.image : baseImage('jre', version),
    // One that builds when it starts takes what it needs from the image.
    caches: builds_at_start ? [] : [maven ? '/root/.m2' : '/root/.gradle'],
    build_env: { GRADLE_OPTS: '-Dorg.gradle.daemon=false', GRADLE_USER_HOME: '/root/.gradle' },
    // A command may call the wrapper that the repository has not, or only half of: then Gradle's own stands in.
    before_install: wrapperLines(tree, build, commands),
    before_build: wrapperLines(tree, build, commands),
    // Downloading first is only a cache; a project that resolves some of it later still builds.
    manifests: commands.install === null ? manifests : [],
    install: commands.install ?? warm,
    build: commands.build,
    after_build: commands.own_start ? collected : [],
    keep: commands.own_start ? [{ from: '/app/server', to: '/app/server' }] : [{ from: '/app', to: '/app' }],
    runtime_env: {
      JAVA_OPTS: '-XX:MaxRAMPercentage=75',
      ...portSettings(build.framework, commands.port),
    },
    start: commands.own_start && distribution ? '/app/server/start' : commands.start,
    port: commands.port,
  }
}
