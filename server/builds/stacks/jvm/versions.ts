import type { SourceTree } from '../../plan.ts'
import { filesNamed, filesWithSuffix, skim } from '../../tree-queries.ts'
import { xmlText } from '../../text-formats.ts'
import {
  chooseVersion,
  toolVersion,
  versionFile,
  type ChosenVersion,
  type VersionRequest,
} from '../../versions.ts'

/**
 * Release of Java for a project. What the build asks to compile for is a minimum: any later one runs it, an
 * earlier one never.
 */
export function javaVersion(tree: SourceTree, declared: VersionRequest | undefined): ChosenVersion {
  const properties = /^java\.runtime\.version\s{0,5}=\s{0,5}([\w.+-]{1,30})/m.exec(
    skim(tree, 'system.properties'),
  )?.[1]
  const sdkman = /^java\s{0,5}=\s{0,5}([\w.+-]{1,40})/m.exec(skim(tree, '.sdkmanrc'))?.[1]
  const requests = [
    declared,
    properties === undefined ? undefined : { wanted: properties, source: 'system.properties' },
    versionFile(tree, '.java-version'),
    sdkman === undefined ? undefined : { wanted: sdkman, source: '.sdkmanrc' },
    toolVersion(tree, 'java'),
    fromPom(tree),
    fromGradle(tree),
  ]
  return chooseVersion(
    'jdk',
    requests.map((request) =>
      request === undefined ? undefined : { ...request, wanted: releaseOf(request.wanted) },
    ),
  )
}

/**
 * `1.8`, `21.0.2-tem`, `temurin-17.0.9` and `VERSION_17` as the number of the release, raised to one that is
 * still built.
 */
function releaseOf(requested: string): string {
  const number = /(?:^|[^\d])(?:1\.)?(\d{1,2})(?:$|[^\d])/.exec(requested)?.[1]
  if (number === undefined) return requested
  return String([8, 11, 17, 21, 25].find((release) => release >= Number(number)) ?? number)
}

function fromPom(tree: SourceTree): VersionRequest | undefined {
  for (const path of filesNamed(tree, 'pom.xml', 1).slice(0, 10)) {
    const text = tree.read(path) ?? ''
    for (const tag of [
      'java.version',
      'maven.compiler.release',
      'maven.compiler.target',
      'maven.compiler.source',
      'release',
      'jdk.version',
      'kotlin.compiler.jvmTarget',
    ]) {
      const desired = xmlText(text, tag.replaceAll('.', '\\.'))
      if (desired !== undefined && /^[\d.]{1,8}$/.test(desired)) return { wanted: desired, source: path }
    }
  }
  return undefined
}

function fromGradle(tree: SourceTree): VersionRequest | undefined {
  for (const path of filesWithSuffix(
    tree,
    ['build.gradle', 'build.gradle.kts', 'gradle.properties', 'libs.versions.toml'],
    2,
  ).slice(0, 12)) {
    const wanted =
      /(?:JavaLanguageVersion\.of\(|jvmToolchain\(|JavaVersion\.VERSION_(?:1_)?|(?:source|target)Compatibility\s{0,5}=\s{0,5}['"]?(?:1\.)?|jvmTarget\s{0,5}=\s{0,5}['"](?:1\.)?|java(?:Version|_version)\s{0,5}=\s{0,5}['"]?)(\d{1,2})/.exec(
        skim(tree, path),
      )?.[1]
    if (wanted !== undefined) return { wanted, source: path }
  }
  return undefined
}
