import { stringify } from 'yaml'
import { own } from '#server/kernel/own'
import { fileOf, type Item } from '#server/project-file/items'
import type { LiveProject } from './live.ts'

/** What a thing is made with when nobody says anything else; it need not be said. */
const DEFAULTS: Readonly<Record<Item['kind'], Record<string, unknown>>> = {
  'shared variable': { secret: false },
  database: {
    public: false,
    limits: { cpus: 1, memory_bytes: 512 * 1024 ** 2 },
    point_in_time: { enabled: false },
  },
  volume: { access: 'single_writer' },
  mount: { read_only: false, mode: '0644' },
  app: { base_directory: '.', replicas: 1, auto_deploy: true, soak_seconds: 10 },
  variable: { secret: false, scopes: ['build', 'runtime'] },
  'database link': {},
  domain: {
    path: '/',
    strip_path: false,
    ssl_mode: 'acme',
    force_https: false,
    www: 'keep',
    maintenance: false,
  },
  'cron job': {
    timezone: 'UTC',
    timeout_s: 600,
    overlap: 'forbid',
    catch_up: 'none',
    retries: 0,
    retry_delay_s: 10,
    enabled: true,
  },
  backup: { timezone: 'UTC', encrypted: true, pause_app: false, enabled: true },
}
const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)

/** A thing as short as it can be said. */
export function withoutDefaults(item: Item): Item {
  const usual = DEFAULTS[item.kind]
  return {
    ...item,
    fields: Object.fromEntries(
      Object.entries(item.fields).filter(
        ([field, value]) => !isEmpty(value) && JSON.stringify(value) !== JSON.stringify(own(usual, field)),
      ),
    ),
  }
}

/** Writes what people would write: `KEY: value`, and a host name alone. */
function shortened(file: Record<string, any>): Record<string, any> {
  const variables = (all: Record<string, any>) =>
    Object.fromEntries(
      Object.entries(all).map(([key, fields]) => {
        const names = Object.keys(fields)
        // A value that looks like a secret and is none has to say so.
        return [key, names.length === 1 && names[0] === 'value' ? fields.value : fields]
      }),
    )
  const shortMounts = (all: Record<string, any>) =>
    Object.fromEntries(
      Object.entries(all).map(([path, { volume, ...rest }]) => [
        path,
        volume !== undefined && Object.keys(rest).length === 0
          ? volume
          : { ...(volume ? { volume } : {}), ...rest },
      ]),
    )
  const short = { ...file }
  if (file.variables) short.variables = variables(file.variables)
  if (file.apps)
    short.apps = Object.fromEntries(
      Object.entries<any>(file.apps).map(([name, app]) => [
        name,
        {
          ...app,
          ...(app.variables ? { variables: variables(app.variables) } : {}),
          ...(app.domains
            ? {
                domains: app.domains.map((one: any) => (Object.keys(one).length === 1 ? one.hostname : one)),
              }
            : {}),
          ...(app.mounts ? { mounts: shortMounts(app.mounts) } : {}),
        },
      ]),
    )
  return short
}

/** Said only where the other fields leave it open. */
function withSource(item: Item): Item {
  const { source, ...fields } = item.fields
  const is_open = source === 'upload' || (source === 'compose' && fields.compose === undefined)
  return { ...item, fields: is_open ? item.fields : fields }
}
/** The text is told to nobody, so that it has to lie beside the file. */
function withFile(item: Item): Item {
  const { content: _told, ...fields } = item.fields
  return { ...item, fields: { file: `${item.of}${item.name}`, ...fields } }
}

/** `portreeve.yaml` of what runs. */
export function exportText(live: LiveProject, seemsSecret: (key: string, value: string) => boolean): string {
  const items = live.items.map((item) => {
    const short = withoutDefaults(item)
    const { value, secret } = item.fields
    if (item.kind === 'app') return withSource(short)
    if (item.kind === 'mount' && item.fields.content !== undefined) return withFile(short)
    if (!/variable/.test(item.kind) || secret !== false || typeof value !== 'string') return short
    // An empty value is one all the same.
    const fields = { ...short.fields, value }
    return { ...short, fields: seemsSecret(item.name, value) ? { ...fields, secret: false } : fields }
  })
  const file = shortened(fileOf(live.is_default ? undefined : live.name, items))
  return stringify(file, { lineWidth: 100, aliasDuplicateObjects: false, compat: 'yaml-1.1' })
}
