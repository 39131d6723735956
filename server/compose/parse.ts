/**
 * A compose file as the platform runs it.
 *
 *     import { parseCompose, ComposeError } from '#server/compose/parse'
 *     const plan = parseCompose(text, { variables: { TAG: '1' }, files, strict: true })
 *
 * Answers a `ComposePlan` (`model.ts`): services in the order in which they start, named volumes,
 * variables, and every key with what becomes of it. Throws a `ComposeError` whose `issues` list
 * what is wrong by dotted path (`services.web.privileged`); `invalidCompose` makes the 422 of it.
 * Nothing is read but the text and `files`.
 */
import { isOwnImage } from '#server/kernel/image-reference'
import { own } from '#server/kernel/own'
import type { ServiceContext } from './context.ts'
import { inOrder, settleDependencies } from './dependencies.ts'
import { readDotenvFile } from './environment.ts'
import { type Found, inspect } from './feature.ts'
import { FEATURES } from './features.ts'
import { filesWithin } from './files-within.ts'
import { interpolate, type VariableUse } from './interpolate.ts'
import { at, ComposeError, type Fields, isFields, Issues } from './issues.ts'
import type { ComposeFiles, ComposePlan, ComposeService } from './model.ts'
import { Room } from './room.ts'
import { checkNetworks, readLinks, readProfiles, readService } from './service.ts'
import { readShared } from './shared-files.ts'
import { readFields } from './values.ts'
import { readComposeText } from './yaml-text.ts'

export { ComposeError }
export type { ComposePlan, ComposeService }

export interface ComposeOptions {
  /** Variables of the app; they win over those of `.env` beside the file. Never those of this process. */
  variables?: Readonly<Record<string, string>>
  /** Name of the app, which is that of the project in Compose's words. */
  name?: string
  /** The checkout that the file is in; without one, nothing of it may be named. */
  files?: ComposeFiles
  /** Folder of the compose file, seen from the root of the checkout. */
  directory?: string
  /** Whether the app keeps data under this name of a volume; without it, none does. */
  holdsData?: (volume: string) => boolean
  /**
   * Whether a variable that the file cannot do without must be set. A dry run says no: it lists
   * what is asked for.
   */
  strict?: boolean
}

const MAX_SERVICES = 60
const OWN_IMAGE = 'must not begin with portreeve/: these are images of apps of this installation.'
/** Variables that a plan lists at most. */
const MAX_NAMED = 1000
const SERVICE_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/
/** Names under which the platform's own words stand in addresses of services. */
const RESERVED = new Set(['localhost'])

export function parseCompose(text: string, options: ComposeOptions = {}): ComposePlan {
  const issues = new Issues()
  const { directory = '.', strict = false, holdsData = () => false } = options
  const room = new Room(issues)
  const files = options.files && filesWithin(options.files, room)
  const beside = files?.read(directory === '.' ? '.env' : `${directory}/.env`)
  const dotenv = new Map<string, Readonly<Record<string, string>>>()
  const set = options.variables ?? {}
  const surroundings = { variables: set, changes_file: true }
  const variables = { ...readDotenvFile({ issues, dotenv }, beside ?? '', '.env', surroundings), ...set }
  // Compose sets these itself.
  const own_names = { PWD: '.', COMPOSE_PROJECT_NAME: options.name ?? 'app' }
  const given = { ...own_names, ...variables }
  const { tree, uses, open } = interpolate(readComposeText(text), { variables: given, issues, strict })
  issues.leaveOpen(open, !strict)
  const found: Found = { taken: [], ignored: [], surprising: [] }
  const file = isFields(tree) ? tree : {}
  inspect(file, FEATURES, '', issues, found)
  const source = {
    ...{ issues, files, directory, variables, strict, found, holdsData, dotenv, room },
    own_variables: set,
    ask: (name: string, path: string, required: boolean) => noteUse(uses, { name, path, required }),
  }
  const { services, left_out } = readServices(
    {
      ...source,
      volumes: new Set(Object.keys(readFields(issues, file.volumes, 'volumes') ?? {})),
      configs: readShared(source, file.configs, 'configs'),
      secrets: readShared(source, file.secrets, 'secrets'),
    },
    file,
  )
  issues.settle()
  const volumes = services.flatMap(({ mounts }) =>
    mounts.flatMap((mount) => (mount.kind === 'volume' ? [mount.volume] : [])),
  )
  const asked = uses.filter(({ name }) => !Object.hasOwn(own_names, name))
  return { services, left_out, volumes: [...new Set(volumes)].sort(), variables: asked, ...found }
}

/** Adds a variable that stands in the file by its name alone to those that are interpolated. */
function noteUse(
  uses: VariableUse[],
  { name, path, required }: { name: string; path: string; required: boolean },
): void {
  const known = uses.find((use) => use.name === name)
  if (known) {
    known.paths.push(path)
    known.required ||= required
  } else if (uses.length < MAX_NAMED) uses.push({ name, default: null, required, paths: [path] })
}

/** A service may run the image that another one of the file builds and names: it is then built like that one. */
function shareBuilds(services: readonly ComposeService[]): void {
  const builds = new Map(services.flatMap(({ image, build }) => (image && build ? [[image, build]] : [])))
  for (const service of services)
    if (service.image && !service.build) service.build = builds.get(service.image) ?? null
}

type FileContext = Omit<ServiceContext, 'name'>

function readServices(
  context: FileContext,
  file: Fields,
): { services: ComposeService[]; left_out: string[] } {
  const { issues } = context
  const all = readFields(issues, file.services, 'services') ?? {}
  const networks = new Set(Object.keys(readFields(issues, file.networks, 'networks') ?? {}))
  const names = Object.keys(all).filter((name) => !name.startsWith('x-'))
  if (names.length === 0) issues.add('services', 'needs at least one service.')
  if (names.length > MAX_SERVICES) issues.add('services', `has more than ${MAX_SERVICES} services.`)
  const chosen = new Set((context.variables.COMPOSE_PROFILES ?? '').split(',').map((one) => one.trim()))
  const read = names.slice(0, MAX_SERVICES).flatMap((name) => {
    const path = at('services', name)
    if (!SERVICE_NAME.test(name) || RESERVED.has(name.toLowerCase()))
      return issues.add(path, 'must be a name of letters, digits, dots, hyphens and underscores.') ?? []
    const fields = readFields(issues, own(all, name), path)
    if (!fields) return issues.add(path, 'must be a mapping.') ?? []
    const service_context = { ...context, name }
    const profiles = readProfiles(service_context, fields)
    const active = profiles.length === 0 || chosen.has('*') || profiles.some((one) => chosen.has(one))
    // What is left out is checked as well: a refused key must not wait for somebody to turn its
    // profile on.
    checkNetworks(service_context, fields, networks)
    return [
      { name, active, links: readLinks(service_context, fields), ...readService(service_context, fields) },
    ]
  })
  const known = {
    active: new Set(read.filter(({ active }) => active).map(({ name }) => name)),
    left_out: new Set(read.filter(({ active }) => !active).map(({ name }) => name)),
  }
  const running = read.filter(({ active }) => active)
  for (const { service, wants } of running)
    service.depends_on = settleDependencies(
      issues,
      wants,
      known,
      at(at('services', service.name), 'depends_on'),
    )
  const services = running.map(({ service }) => service)
  shareBuilds(services)
  for (const { name, image, build } of services)
    if (image !== null && !build && isOwnImage(image))
      issues.add(at(at('services', name), 'image'), OWN_IMAGE)
  for (const { links } of running)
    for (const { service, alias } of links)
      services.find(({ name, aliases }) => name === service && !aliases.includes(alias))?.aliases.push(alias)
  // One that is all there is stays: an app of which nothing runs is none.
  if (running.some(({ ends }) => !ends)) for (const { service, ends } of running) service.one_off = ends
  for (const { depends_on } of services)
    for (const { service, condition } of depends_on)
      if (condition === 'service_completed_successfully')
        services.find(({ name }) => name === service)!.one_off = true
  return { services: inOrder(issues, services), left_out: [...known.left_out] }
}
