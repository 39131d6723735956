import { own } from '#server/kernel/own'
import semver from 'semver'
import { BASE_IMAGES, type ImageFamily, type ImageFamilyName } from './base-images.ts'
import type { SourceTree } from './plan.ts'
import { firstLine } from './tree-queries.ts'
import { toolRequests } from './tool-requests.ts'

/** A version that some file asks for, as it is written there. */
export interface VersionRequest {
  wanted: string
  source: string
}

/** The version that an app gets, and why. */
export interface ChosenVersion {
  version: string
  source: string
}

const MAX_LENGTH = 120
const SAFE_TEXT = /^[\w .,:<>=~^|*+!()/-]+$/

/** The first line of the first of these files that exists. */
export function versionFile(tree: SourceTree, ...paths: string[]): VersionRequest | undefined {
  for (const path of paths) {
    const requested = firstLine(tree, path)
    if (requested !== undefined) return { wanted: requested, source: path }
  }
  return undefined
}

/** What asdf, mise, Railpack or Nixpacks ask for one of these tools. */
export function toolVersion(tree: SourceTree, ...tools: string[]): VersionRequest | undefined {
  const found = toolRequests(tree).find(({ tool, wanted }) => wanted !== '' && tools.includes(tool))
  return found && { wanted: found.wanted, source: found.source }
}

/**
 * Turns the first request that names a known version into one of the family's versions. A range takes the
 * default when the default satisfies it, else the newest that does; a version nobody offers takes the nearest
 * one, and the source says so.
 */
export function chooseVersion(
  name: ImageFamilyName,
  requests: readonly (VersionRequest | undefined)[],
  preferred?: string,
): ChosenVersion {
  const family: ImageFamily = BASE_IMAGES[name]
  const standard = preferred ?? family.default_version
  for (const request of requests) {
    if (request === undefined) continue
    const version = matchVersion(family.versions, standard, request.wanted)
    if (version !== undefined) return { version, source: request.source }
    const near = nearestVersion(family.versions, request.wanted)
    if (near !== undefined) return { version: near, source: `${request.source} (nearest supported version)` }
  }
  return {
    version: standard,
    source: preferred === undefined ? 'default' : 'default for projects of this age',
  }
}

/** One of `versions` that satisfies the text, or undefined. */
export function matchVersion(
  versions: readonly string[],
  standard: string,
  text: string,
): string | undefined {
  const desired = cleanVersion(text)
  if (desired === undefined) return undefined
  const exact = versions
    .filter((version) => desired === version || desired.startsWith(`${version}.`))
    .sort((a, b) => b.length - a.length)[0]
  if (exact !== undefined && /^\d+(\.\d+)*$/.test(desired)) return exact
  if (/^(latest|current|node|stable)$/.test(desired))
    return desired === 'stable' ? standard : newestNumeric(versions)
  if (/^(lts|lts\/\*|lts\/-\d|\*|x)$/.test(desired)) return standard
  const code_name = own(LTS_NAMES, desired.replace(/^lts\//, ''))
  if (code_name !== undefined) return versions.find((version) => version === code_name)
  const range = toRange(desired)
  if (range === undefined) return undefined
  return [standard, ...versions].find((version) => intersects(version, range))
}

/** Names of Node's long-term releases, as `lts/jod` in `.nvmrc`. */
const LTS_NAMES: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  carbon: '8',
  dubnium: '10',
  erbium: '12',
  fermium: '14',
  gallium: '16',
  hydrogen: '18',
  iron: '20',
  jod: '22',
  krypton: '24',
})

function cleanVersion(text: string): string | undefined {
  const value = text
    .trim()
    .replace(/^['"]|['"]$/g, '')
    .trim()
  if (value === '' || value.length > MAX_LENGTH || !SAFE_TEXT.test(value)) return undefined
  return value
    .toLowerCase()
    .replace(
      /^(?:prefix:|v|node-|nodejs-|python-|ruby-|go|java-|temurin-|openjdk-|zulu-|corretto-|swift-|php-)(?=\d)/,
      '',
    )
}

/** Understands npm's, Composer's and Python's ranges: all of them become npm's. */
function toRange(wanted: string): semver.Range | undefined {
  const alternatives = wanted.split(/\s*\|\|?\s*/).map((part) =>
    part
      .split(',')
      .map((piece) => piece.trim())
      .filter((piece) => piece !== '' && !piece.startsWith('!='))
      .map(rangePiece)
      .join(' '),
  )
  try {
    return new semver.Range(
      alternatives.join(' || ').replace(/(\d)-(?:ea|rc|preview|beta|alpha)[\w.]*/g, '$1'),
    )
  } catch {
    return undefined
  }
}

function rangePiece(piece: string): string {
  const compatible = /^~[=>]?\s*v?(\d+)\.(\d+)(\.\d+)?$/.exec(piece)
  // `~= 3.10` of Python, `~> 3.2` of Ruby and `~8.1` of Composer allow the last given number to grow.
  if (compatible !== null && compatible[3] === undefined)
    return `>=${compatible[1]}.${compatible[2]}.0 <${Number(compatible[1]) + 1}.0.0`
  return piece
    .replace(/^~[=>]\s*/, '~')
    .replace(/^={2,3}\s*/, '=')
    .replace(/\.\*/g, '.x')
}

function intersects(version: string, range: semver.Range): boolean {
  if (!/^\d+(\.\d+){0,2}$/.test(version)) return false
  const parts = version.split('.')
  return range.intersects(new semver.Range(parts.length === 3 ? version : `${version}.x`))
}

function newestNumeric(versions: readonly string[]): string | undefined {
  return versions.find((version) => /^\d/.test(version))
}

/** For `node 27` the newest, for `python 2.6` the oldest; for anything that is no number, nothing. */
function nearestVersion(versions: readonly string[], text: string): string | undefined {
  const requested = semver.coerce(cleanVersion(text) ?? '')
  const offered = versions
    .map((version) => ({ version, value: semver.coerce(version) }))
    .filter(({ version }) => /^\d/.test(version))
  const newest = offered[0]
  if (requested === null || newest?.value == null) return undefined
  if (semver.gt(requested, newest.value)) return newest.version
  return offered.findLast(({ value }) => value !== null && semver.gte(value, requested))?.version
}
