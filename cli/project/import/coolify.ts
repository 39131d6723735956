import { own } from '#server/kernel/own'
import {
  bytesOf,
  compact,
  createMoved,
  domainsOf,
  environmentOf,
  isFields,
  listOf,
  type Moved,
  numberOf,
  pathOf,
  textOf,
} from './moved.ts'

type Fields = Record<string, any>
type Adding = ReturnType<typeof createMoved>
const ENGINES: readonly (readonly [RegExp, string])[] = [
  [/postgres/, 'postgres'],
  [/mysql/, 'mysql'],
  [/mariadb/, 'mariadb'],
  [/mongo/, 'mongodb'],
  [/redis|keydb|dragonfly/, 'redis'],
  [/valkey/, 'valkey'],
  [/clickhouse/, 'clickhouse'],
]

/** `owner/name` stands for a repository at GitHub. */
const repositoryOf = (text: string): string =>
  /^[\w.-]+\/[\w.-]+$/.test(text) ? `https://github.com/${text}${text.endsWith('.git') ? '' : '.git'}` : text

/** Where the source of an application comes from, by its build pack. */
function sourceOf(app: Fields): Fields | undefined {
  const image = textOf(app.docker_registry_image_name)
  if (app.build_pack === 'dockerimage' && image)
    return { image: `${image}:${textOf(app.docker_registry_image_tag) ?? 'latest'}` }
  const compose = textOf(app.docker_compose_raw) ?? textOf(app.docker_compose)
  const git = textOf(app.git_full_url) ?? textOf(app.git_repository)
  if (app.build_pack === 'dockercompose' && !git) return compose ? { compose } : undefined
  if (!git) {
    const dockerfile = textOf(app.dockerfile)
    if (dockerfile) return { dockerfile }
    return compose ? { compose } : undefined
  }
  const stands_in_repository = app.build_pack === 'dockercompose'
  return compact({
    ...(stands_in_repository ? { source: 'compose', compose_path: pathOf(app.docker_compose_location) } : {}),
    git_url: repositoryOf(git),
    branch: textOf(app.git_branch),
    base_directory: pathOf(app.base_directory),
  })
}

/** A value as it was before Coolify wrote it for a shell. */
function fromShell(text: string, is_quoted: boolean): string {
  if (is_quoted) return text.replace(/^'(.*)'$/s, '$1')
  const meant: Fields = { r: '\r', t: '\t', 0: '\0' }
  return text.replaceAll(/\\([\\rt0"'])/g, (_all, one: string) => String(own(meant, one) ?? one))
}

/** The variables of an application or a service; what has no value that can be had is told. */
function variablesOf(moved: Adding, at: string, one: Fields): Fields {
  const known = listOf(one.environment_variables).concat(listOf(one.envs))
  const found: [string, string][] = []
  for (const { key, value, real_value, is_preview, is_literal, is_multiline } of known) {
    const place = `${at} ${String(key)}`
    const is_shared = /^\s*\{\{.*\}\}\s*$/s.test(String(value ?? ''))
    const real =
      typeof real_value === 'string' ? fromShell(real_value, Boolean(is_literal || is_multiline)) : undefined
    if (is_preview) continue
    if (typeof value === 'string' && !is_shared) found.push([String(key), value])
    else if (real !== undefined && !real.startsWith('{{')) found.push([String(key), real])
    else if (is_shared)
      moved.note('refused', place, `refers to ${String(value).trim()}, whose value is not in the export.`)
    else
      moved.note(
        'refused',
        place,
        'has no value in the export: it is empty there, or the token may not read sensitive data.',
      )
  }
  return Object.fromEntries(found)
}

/** Mounts the volumes of an application where they were. */
function addStorages(moved: Adding, at: string, name: string, app: Fields): void {
  const told: Fields = isFields(app.storages) ? app.storages : app
  for (const one of listOf(told.persistent_storages)) {
    const path = textOf(one.mount_path)
    const old = textOf(one.name)
    const place = `${at} volume ${path ?? '?'}`
    if (path && old && !textOf(one.host_path)) moved.addVolume(place, name, path, old)
    else moved.note('refused', place, 'is a folder of the server.')
  }
  for (const one of listOf(told.file_storages))
    moved.note(
      'refused',
      `${at} file ${textOf(one.mount_path) ?? '?'}`,
      'lies on the server; add its text below mounts of the app, with content or file.',
    )
}

/** Says of what Coolify tells by other calls that it may be missing: nothing of an app gets lost without a word. */
function tellMissing(moved: Adding, at: string, app: Fields): void {
  for (const [fields, what, call] of [
    [['environment_variables', 'envs'], 'variables', 'envs'],
    [['storages', 'persistent_storages'], 'volumes', 'storages'],
  ] as const)
    if (!fields.some((field) => typeof app[field] === 'object' && app[field] !== null))
      moved.note(
        'refused',
        `${at} ${what}`,
        `are not in the export: put what GET /api/v1/applications/{uuid}/${call} answers below the application, as ${fields[0]}.`,
      )
}

const portsOf = (app: Fields): (number | undefined)[] =>
  (textOf(app.ports_exposes) ?? '').split(',').map(numberOf)

/** What an application has there that it does not get here, or gets otherwise. */
function tellOthers(moved: Adding, at: string, name: string, app: Fields): void {
  const [port, ...ports] = portsOf(app)
  const told = [
    [ports.length > 0, 'ports_exposes', `only ${port} takes requests; name others on single domains.`],
    [app.build_pack === 'nixpacks', 'build_pack', 'nixpacks is replaced by the detection of Portreeve.'],
    [app.build_pack === 'static', 'publish_directory', 'the folder of a static site is detected.'],
  ] as const
  for (const [is_so, field, message] of told) if (is_so) moved.note('changed', `${at} ${field}`, message)
  for (const field of [
    'ports_mappings',
    'custom_docker_run_options',
    'post_deployment_command',
    'custom_labels',
    'custom_nginx_configuration',
    'private_key_id',
    'docker_compose_domains',
    'docker_compose_custom_build_command',
    'docker_compose_custom_start_command',
    'dockerfile_target_build',
    'health_check_command',
  ] as const)
    if (textOf(app[field]) ?? numberOf(app[field]))
      moved.note('refused', `${at} ${field}`, `is not taken; set what ${name} needs of it by hand.`)
  if (app.redirect === 'www' || app.redirect === 'non-www')
    moved.note('refused', `${at} redirect`, `is not taken; set www of the domain.`)
}

/** What the API gives as an application, with its variables below `environment_variables`. */
function addApplication(moved: Adding, app: Fields): void {
  const at = `application ${textOf(app.name) ?? textOf(app.uuid) ?? '?'}`
  const source = sourceOf(app)
  if (!source) {
    return moved.note(
      'refused',
      at,
      'names no repository, image, Dockerfile or compose file. Export it with a token that may read sensitive data.',
    )
  }
  const [port] = portsOf(app)
  const build = compact({
    install_command: textOf(app.install_command),
    build_command: textOf(app.build_command),
    start_command: textOf(app.start_command),
    release_command: textOf(app.pre_deployment_command),
    dockerfile_path:
      app.build_pack === 'dockerfile' && source.git_url ? pathOf(app.dockerfile_location) : undefined,
  })
  const domains = (textOf(app.fqdn) ?? '').split(',').filter(Boolean)
  const name = moved.addApp(
    at,
    textOf(app.name) ?? String(app.uuid),
    compact({
      ...source,
      build,
      port,
      health_check: app.health_check_enabled
        ? compact({ type: 'http', path: textOf(app.health_check_path) })
        : undefined,
      limits: compact({ memory_bytes: bytesOf(app.limits_memory), cpus: numberOf(app.limits_cpus) }),
      watch_paths: textOf(app.watch_paths)
        ?.split('\n')
        .map((line) => line.trim())
        .filter(Boolean),
      domains: domainsOf(domains),
    }),
    variablesOf(moved, at, app),
    textOf(app.uuid),
  )
  // Those of a stack stand in its compose file.
  if (app.build_pack !== 'dockercompose') addStorages(moved, at, name, app)
  tellMissing(moved, at, app)
  for (const address of domains)
    if (/^(https?:\/\/)?[^/]+:\d+/.test(address))
      moved.note(
        'changed',
        `${at} fqdn ${address}`,
        'goes to the port of the app; set another one on the domain.',
      )
  if (app.is_http_basic_auth_enabled) moved.noteOpenPage(at)
  tellOthers(moved, at, name, app)
}

/** A stack with the values that its data were made with. */
function addService(moved: Adding, service: Fields): void {
  const compose = textOf(service.docker_compose_raw)
  const name = textOf(service.name) ?? 'service'
  const at = `service ${textOf(service.name) ?? '?'}`
  if (!compose) return moved.note('refused', at, 'has no compose file in the export.')
  const variables = { ...environmentOf(service.env), ...variablesOf(moved, at, service) }
  moved.addApp(at, name, { compose }, variables, textOf(service.uuid))
  for (const part of listOf(service.applications))
    for (const address of (textOf(part.fqdn) ?? '').split(',').filter(Boolean))
      moved.note('refused', `${at} domain ${address}`, 'is not taken; add it to its service by hand.')
}

/** The lists of a tree: one application, or a list of them, counts as `applications`. */
function rootOf(tree: unknown): Fields {
  if (Array.isArray(tree)) return { applications: tree }
  if (!isFields(tree)) return {}
  return tree.git_repository === undefined ? tree : { applications: [tree] }
}

/**
 * Reads what Coolify's API tells: the list of `GET /api/v1/applications` or one of them, or an
 * object with `applications`, `services` and `databases`.
 */
export function fromCoolify(tree: unknown): Moved {
  const moved = createMoved()
  const root = rootOf(tree)
  for (const app of listOf(root.applications)) addApplication(moved, app)
  for (const service of listOf(root.services)) addService(moved, service)
  for (const database of listOf(root.databases)) {
    const kind = `${textOf(database.database_type) ?? textOf(database.type) ?? ''} ${textOf(database.image) ?? ''}`
    const engine = ENGINES.find(([pattern]) => pattern.test(kind))?.[1]
    const at = `database ${textOf(database.name) ?? '?'}`
    if (engine) moved.addDatabase(at, textOf(database.name) ?? engine, engine, database.image)
    else moved.note('refused', at, 'is of a kind that is not known here.')
  }
  return moved
}
