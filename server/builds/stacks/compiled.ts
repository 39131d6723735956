import { baseImage, type ImageFamilyName } from '../base-images.ts'
import type { CheckedLine } from '../checks.ts'
import type { SourceTree } from '../plan.ts'
import { chooseVersion, type VersionRequest } from '../versions.ts'
import { TCP, because, type Commands, type Stack } from './stack.ts'

/** What a small compiled language says of one repository. */
export interface CompiledFacts {
  framework?: string | null
  package_manager: string | null
  install: string | null
  build: string | null
  start: string | null
  port: number
  /** File that the decision rests on. */
  source: string
  manifests?: readonly string[]
  build_packages?: readonly string[]
  runtime_packages?: readonly string[]
  build_setup?: readonly string[]
  runtime_setup?: readonly string[]
  build_env?: Readonly<Record<string, string>>
  runtime_env?: Readonly<Record<string, string>>
  after_build?: readonly (string | CheckedLine)[]
  /** What the finished image takes from the build; the default is the work folder. */
  keep?: readonly { from: string; to: string }[]
  static_site?: { from: string; fallback: 'spa' | 'pages' }
}

/** A language whose build leaves a program, told by a few facts. */
export interface CompiledLanguage {
  name: string
  help: string
  looked_for: readonly string[]
  detect(tree: SourceTree): boolean
  image: ImageFamilyName
  /**
   * Image of the finished app; undefined: the same as the build's, because the program needs its libraries.
   */
  runtime_image?: (version: string) => string
  /** Image to build in when the language has none of its own. */
  versions(tree: SourceTree): readonly (VersionRequest | undefined)[]
  facts(tree: SourceTree, version: string): CompiledFacts
}

/** Makes a stack of a language's facts. */
export function compiledStack(language: CompiledLanguage): Stack {
  const { name, help, looked_for, detect } = language
  return {
    name,
    help,
    looked_for,
    detect,
    plan({ tree, version_request }) {
      const version = chooseVersion(language.image, [version_request, ...language.versions(tree)])
      const facts = language.facts(tree, version.version)
      const shown = /\d/.test(version.version) ? version.version : null
      return {
        stack: name,
        framework: facts.framework ?? null,
        version: shown,
        package_manager: facts.package_manager,
        install_command: facts.install,
        build_command: facts.build,
        start_command: facts.start,
        release_command: null,
        port: facts.port,
        health_check: facts.static_site === undefined ? TCP : { type: 'http', path: '/' },
        explanation: [
          ...because('stack', name, facts.source),
          ...because('framework', facts.framework, facts.source),
          ...because('version', shown, version.source),
          ...because('install_command', facts.install, facts.source),
          ...because('build_command', facts.build, facts.source),
          ...because('start_command', facts.start, facts.source),
          ...because(
            'port',
            String(facts.port),
            facts.static_site === undefined ? 'default, set as PORT' : 'nginx',
          ),
        ],
        layout: (commands: Commands) => ({
          build_image: baseImage(language.image, version.version),
          runtime_image:
            commands.own_start && language.runtime_image !== undefined
              ? language.runtime_image(version.version)
              : baseImage(language.image, version.version),
          build_packages: facts.build_packages,
          runtime_packages: facts.runtime_packages,
          build_setup: facts.build_setup,
          runtime_setup: facts.runtime_setup,
          build_env: facts.build_env,
          runtime_env: facts.runtime_env,
          manifests: facts.manifests ?? [],
          install: commands.install,
          build: commands.build,
          after_build: commands.build === facts.build ? facts.after_build : [],
          keep: facts.keep,
          start: commands.start,
          static_site: commands.own_start ? facts.static_site : undefined,
          port: commands.port,
        }),
      }
    },
  }
}
