import { baseImage } from './base-images.ts'
import { portOfCommand } from './commands.ts'
import { suggestedVariables } from './example-variables.ts'
import { withForeignPackages } from './foreign-packages.ts'
import { ignoredSettings } from './ignored-settings.ts'
import { interpreterPackages } from './interpreters.ts'
import { layoutStages, type BuildLayout } from './layout.ts'
import { DetectionError, type BuildPlan, type Explanation, type SourceTree } from './plan.ts'
import { isCopyable, renderDockerfile } from './render-dockerfile.ts'
import { type DeclaredSettings, type DetectOptions, withDetected } from './declared.ts'
export type { DetectOptions } from './declared.ts'
import { declaredExplanations, declaredSettings } from './repository-settings.ts'
import { findDockerfile, otherDockerfile, planDockerfile } from './stacks/dockerfile.ts'
import { STACKS } from './stacks/index.ts'
import { procfileOnly as programs } from './stacks/shell.ts'
import { because, type Commands, type Stack, type StackProposal } from './stacks/stack.ts'
import { withFallback } from './site-fallback.ts'
import { folderOf } from './tree-queries.ts'
import { undetected } from './undetected.ts'

/**
 * Works out how a folder is built and run. Looks at files only and runs nothing. For an app in a sub-folder
 * hand in `tree.sub(folder)`. Throws a DetectionError, and nothing else, when the folder is not understood.
 */
export function detect(tree: SourceTree, overrides: DetectOptions = {}): BuildPlan {
  try {
    const plan = detectPlan(tree, overrides)
    const suggested_variables = suggestedVariables(tree)
    return suggested_variables.length === 0 ? plan : { ...plan, suggested_variables }
  } catch (error) {
    if (error instanceof DetectionError) throw error
    const reason = error instanceof Error ? error.message : 'unknown'
    throw new DetectionError(
      `The files of the repository could not be turned into a build: ${reason}`,
      'Add a Dockerfile, or set the stack and the commands of the app.',
      [],
    )
  }
}

function detectPlan(tree: SourceTree, overrides: DetectOptions): BuildPlan {
  const declared = declaredSettings(tree, overrides)
  const own_dockerfile = findDockerfile(tree, declared)
  if (own_dockerfile !== undefined) return planDockerfile(tree, declared, own_dockerfile)
  const stack = chooseStack(tree, declared)
  const other_dockerfile = stack === undefined ? otherDockerfile(tree) : undefined
  if (other_dockerfile !== undefined) return planDockerfile(tree, declared, other_dockerfile)
  if (stack === undefined)
    throw undetected(tree, (folder) => STACKS.find((candidate) => candidate.detect(folder))?.name)
  const version_request =
    declared.version === undefined
      ? undefined
      : { wanted: declared.version.value, source: declared.version.source }
  return finish(tree, stack.plan({ tree, declared, version_request }), declared, overrides)
}

function chooseStack(tree: SourceTree, declared: DeclaredSettings): Stack | undefined {
  if (declared.stack === undefined)
    return (
      STACKS.find((stack) => stack.detect(tree)) ?? (namesItsStart(tree, declared) ? programs : undefined)
    )
  const { value, source } = declared.stack
  // Two descriptors may share a slug, such as a site's generator and its plain files: the one that fits is
  // meant.
  const named = STACKS.filter((stack) => stack.name === value)
  if (named.length > 0) return named.find((stack) => stack.detect(tree)) ?? named.at(-1)
  const names = new Set(STACKS.map((stack) => stack.name))
  throw new DetectionError(
    `There is no stack ${JSON.stringify(value.slice(0, 60))} (from ${source}).`,
    `Known stacks: ${[...names].join(', ')}, dockerfile.`,
    [],
  )
}

/** Whether a file of the repository says how it is started: that is enough to run what lies in it. */
function namesItsStart(tree: SourceTree, { start_command }: DeclaredSettings): boolean {
  return start_command !== undefined && tree.has(start_command.source)
}

function finish(
  tree: SourceTree,
  proposal: StackProposal,
  declared: DeclaredSettings,
  { build_args = [], build_secrets = false, project_file, warnings = [] }: DetectOptions,
): BuildPlan {
  const others = declared.processes?.value ?? {}
  const beside_web = project_file?.has_web && declared.processes?.source === project_file.name
  const web = declared.start_command !== undefined || declared.processes === undefined || beside_web === true
  // A Procfile without `web` says all that runs: the image starts as the first of its processes does.
  const start_command =
    declared.start_command?.value ?? (web ? proposal.start_command : Object.values(others)[0]!)
  const fixed_port =
    declared.start_command === undefined ? undefined : portOfCommand(declared.start_command.value)
  const commands: Commands = {
    install: withDetected(declared.install_command?.value, proposal.install_command),
    build: withDetected(declared.build_command?.value, proposal.build_command),
    start: start_command,
    others: [
      ...[declared.release_command?.value ?? proposal.release_command ?? []].flat(),
      ...Object.values(others),
      ...(declared.cron_jobs?.value ?? []).map(({ command }) => command),
    ],
    own_start: web && declared.start_command === undefined,
    port: declared.port?.value ?? fixed_port ?? proposal.port,
    build_args: build_args.filter((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)),
  }
  const site = withFallback(tree, withSite(tree, proposal.layout(commands)))
  const packages = withForeignPackages(tree, proposal.stack, site.layout)
  const layout = {
    ...withInterpreters(tree, commands, packages.layout),
    build_args: commands.build_args,
    build_secrets,
  }
  if (layout.start === null && layout.static_site === undefined) throw withoutStart(proposal)
  return {
    stack: proposal.stack,
    framework: proposal.framework,
    version: proposal.version,
    package_manager: proposal.package_manager,
    install_command: commands.install,
    build_command: commands.build,
    start_command: web ? start_command : null,
    release_command: declared.release_command?.value ?? proposal.release_command,
    port: commands.port,
    health_check: declared.health_check?.value ?? proposal.health_check,
    dockerfile: renderDockerfile(layoutStages(layout)),
    processes: others,
    web,
    cron_jobs: declared.cron_jobs?.value ?? [],
    explanation: mergeExplanations(
      [
        ...declaredExplanations(declared),
        ...warnings.flatMap((text) => because('warning', text, 'package.json')),
        ...(web ? [] : because('web', 'none: no process takes requests', declared.processes?.source ?? '')),
        ...(declared.port === undefined ? because('port', fixed_port?.toString(), 'the start command') : []),
        ...site.explanation,
        ...packages.explanation,
        ...ignoredSettings(tree, proposal.stack),
      ],
      web ? proposal.explanation : withoutWeb(proposal.explanation),
    ),
  }
}

/** What a stack proposes for a process that takes requests says nothing of an app that has none. */
const withoutWeb = (explanation: readonly Explanation[]): Explanation[] =>
  explanation.filter(({ field }) => !['start_command', 'port', 'health_check'].includes(field))

/** Adds the interpreters that the first lines of scripts name, where they are needed. */
function withInterpreters(tree: SourceTree, commands: Commands, layout: BuildLayout): BuildLayout {
  const missing = (lines: readonly (string | null)[], image: string) =>
    interpreterPackages(tree, lines, image === baseImage('debian'))
  const { install, build, start, others } = commands
  const to_build = missing([install, build], layout.build_image)
  const to_run = missing([start, ...others], layout.runtime_image)
  return {
    ...layout,
    ...(to_build.length > 0 ? { build_packages: [...(layout.build_packages ?? []), ...to_build] } : {}),
    ...(to_run.length > 0 ? { runtime_packages: [...(layout.runtime_packages ?? []), ...to_run] } : {}),
  }
}

/** More pages than this in the source tell nothing about what a build would add. */
const MAX_PAGES = 40

/** A site that is built, with what tells the folder that the build wrote from those of the source. */
function withSite(tree: SourceTree, layout: BuildLayout): BuildLayout {
  if (layout.static_site === undefined || layout.build === null) return layout
  const folders = tree
    .files()
    .filter((path) => /(?:^|\/)index\.html$/.test(path))
    .map(folderOf)
  const readable = folders.every((folder) => folder === '' || isCopyable(folder))
  const folders_of_source = folders.length > MAX_PAGES || !readable ? undefined : folders
  return { ...layout, static_site: { ...layout.static_site, folders_of_source } }
}

/** One row per field, the declared one first. */
function mergeExplanations(declared: Explanation[], detected: Explanation[]): Explanation[] {
  const known = new Set(declared.map(({ field }) => field).filter((field) => field !== 'version'))
  return [...declared, ...detected.filter(({ field }) => !known.has(field))]
}

function withoutStart(proposal: StackProposal): DetectionError {
  return new DetectionError(
    `This looks like ${proposal.framework ?? proposal.stack}, but nothing says how to start it.`,
    'Set the start command of the app, or add a line `web: <command>` to a file named Procfile.',
    ['Procfile', 'portreeve.json'],
  )
}
