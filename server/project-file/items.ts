import { own } from '#server/kernel/own'
import type { ProjectFile } from './schema.ts'

/** Kinds of what a project consists of, in the order in which one may need another. */
export const ITEM_KINDS = [
  'shared variable',
  'database',
  'volume',
  'app',
  'variable',
  'database link',
  'mount',
  'domain',
  'cron job',
  'backup',
] as const
export type ItemKind = (typeof ITEM_KINDS)[number]

/** One thing of a project, in a file or as it runs. */
export interface Item {
  kind: ItemKind
  /** App that it belongs to. */
  of?: string
  name: string
  fields: Record<string, unknown>
  /** Set for what runs. */
  id?: string
}
export const keyOf = ({ kind, of = '', name }: Pick<Item, 'kind' | 'of' | 'name'>): string =>
  JSON.stringify([kind, of, name])
/** Key of a list of things: `variables` of an app are one, all apps are one. */
export const listOf = ({ kind, of = '' }: Pick<Item, 'kind' | 'of'>): string => JSON.stringify([kind, of])

/** A name at a path; the same name may lead to several apps by path. */
export const domainName = ({ hostname, path }: { hostname: string; path?: string }): string =>
  path === undefined || path === '/' ? hostname : `${hostname}${path}`

/** What a file says, one by one, and which lists it says all of. */
export function itemsOf(file: ProjectFile): { items: Item[]; stated: ReadonlySet<string> } {
  const items: Item[] = []
  const stated = new Set<string>()
  const add = (kind: ItemKind, all: Record<string, Record<string, unknown>> | undefined, of?: string) => {
    const owner = of === undefined ? {} : { of }
    if (all) stated.add(listOf({ kind, ...owner }))
    for (const [name, fields] of Object.entries(all ?? {})) items.push({ kind, ...owner, name, fields })
  }
  add('shared variable', file.variables)
  add('database', file.databases)
  add('volume', file.volumes)
  const apps = Object.entries(file.apps ?? {})
  add(
    'app',
    file.apps &&
      Object.fromEntries(
        apps.map(([name, { variables: _v, domains: _d, databases: _b, mounts: _m, cron: _c, ...app }]) => [
          name,
          app,
        ]),
      ),
  )
  for (const [name, app] of apps) {
    add('variable', app.variables, name)
    add(
      'domain',
      app.domains && Object.fromEntries(app.domains.map((domain) => [domainName(domain), domain])),
      name,
    )
    add(
      'database link',
      app.databases &&
        Object.fromEntries(Object.entries(app.databases).map(([database, key]) => [database, { key }])),
      name,
    )
    add('mount', app.mounts, name)
    add('cron job', app.cron, name)
  }
  add('backup', file.backups)
  return { items, stated }
}

/** The file that says what these things are, by their names; the other way round. */
export function fileOf(project: string | undefined, items: readonly Item[]): ProjectFile {
  const file: Record<string, any> = { ...(project === undefined ? {} : { project }) }
  const place = (holder: Record<string, any>, section: string, { name, fields }: Item) => {
    holder[section] = { ...own(holder, section), [name]: fields }
  }
  const sections: Partial<Record<ItemKind, string>> = {
    'shared variable': 'variables',
    database: 'databases',
    volume: 'volumes',
    app: 'apps',
    variable: 'variables',
    mount: 'mounts',
    'cron job': 'cron',
    backup: 'backups',
  }
  const sorted = [...items].sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const kind of ITEM_KINDS)
    for (const item of sorted.filter((one) => one.kind === kind)) {
      const holder = item.of === undefined ? file : own<Record<string, any>>(file.apps, item.of)
      if (!holder) continue
      const section = sections[kind]
      if (section) place(holder, section, { ...item, fields: { ...item.fields } })
      else if (kind === 'domain') holder.domains = [...(holder.domains ?? []), item.fields]
      else holder.databases = { ...holder.databases, [item.name]: item.fields.key }
    }
  return file as ProjectFile
}
