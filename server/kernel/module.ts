import type { Channel } from './channels.ts'
import type { JobDefinition } from './jobs/definition.ts'
import type { Actor } from './access.ts'
import type { IdPrefix } from './ids.ts'
import type { ListedResource, ResourceSource, TableSource } from './resources.ts'
import type { Share } from './shares.ts'

/** A kind of resource that belongs to projects: found by its id, listed, searched, counted. */
export interface ResourceKind extends Omit<TableSource, 'kind'> {
  /** What endpoints call it in `scope`, and answers in `kind`: `ssh_key`. */
  noun: string
  /** How their ids begin: `ssh`. */
  prefix: IdPrefix
  /** Default `everywhere`: overviews, search, quotas, and whether a project is empty. */
  listed?: 'everywhere' | 'search' | 'nowhere'
}

/** Rows that jobs work on and that no list names, such as runs of a cron job. */
export interface Parts {
  /** How their ids begin: `run`. */
  prefix: IdPrefix
  table: string
  /** Column with the id of what each is a part of, null for one that is no part of anything. */
  of: string
}

/** A column whose values are sealed. A rotation of the key seals what is listed, and only that, anew. */
export interface SealedColumn {
  table: string
  column: string
  /** Columns that name the row. */
  key: readonly string[]
  /** What the value was sealed for. */
  context(row: Record<string, string>): string
}
/** A sealed column of rows with an id, whose values are sealed for `<table>/<column>/<id>`. */
export const sealedById = (table: string, column: string): SealedColumn => ({
  table,
  column,
  key: ['id'],
  context: ({ id }) => `${table}/${column}/${id}`,
})

/** A group of the API document. */
export interface ApiTag {
  name: string
  description: string
  /** Paths of the group, without `/api/`, beside those that begin with its name. */
  paths?: RegExp
}

/** Files of `tasks/`: each wakes the schedules that name it. */
export type TaskName = 'builds' | 'backups' | 'certificates' | 'cleanup' | 'cron' | 'domains' | 'metrics'

export interface ModuleSchedule<Own, Use, Base> {
  /** Unique within the module. */
  name: string
  /** A pattern as croner reads it, in UTC; a task looks every minute. */
  cron: string
  /** Default `cleanup`. */
  task?: TaskName
  /** Runs at most once at a time; a fault is logged and does not keep it from running again. */
  run(own: Own, use: Use, base: Base): unknown
}

export interface OwnedApp {
  id: string
  project_id: string
}
/** What follows an app. `moved`, `deleting` and `removed` run in the transaction of the change. */
export interface AppFacet<Own> {
  moved?(own: Own, app_id: string, from_project_id: string): void
  /** Somebody asked for the deletion of the app; its row stays until all that it runs is gone. */
  deleting?(own: Own, app_id: string): void
  /**
   * Forgets some of what gathered about an app that nothing runs of any more; returns how much. It
   * is called until that is 0, with others in between, before `removed`: what refers to a row goes
   * with it in one piece.
   */
  history?(own: Own, app_id: string): number
  /** The app's row goes next, and what refers to it. */
  removed?(own: Own, app_id: string): void
  /** Variables that instances of the app get, in clear; later modules of the list win. */
  environment?(own: Own, app: OwnedApp): Record<string, string>
  /** Values that processes of the app may have, and that its logs must not show. */
  secrets?(own: Own, app: OwnedApp): readonly string[]
  /**
   * What its source and its images are fetched with. Its processes never have it, so that only logs
   * of deployments look for it: whoever runs a process could guess at what its log masks.
   */
  fetch_secrets?(own: Own, app: OwnedApp): readonly string[]
}

/** Images that a domain makes containers of. */
export interface ImageFacet<Own> {
  /**
   * Ids and names of those that must stay though no container may use them now, e.g. those of
   * releases that can be rolled back to.
   */
  needed(own: Own): readonly string[] | Promise<readonly string[]>
  /** An image was removed to free the disk. */
  removed?(own: Own, image_id: string): void
}

/** What is forgotten, by what it is. */
export type Forgetting<Own, Use, Base> = Readonly<
  Record<string, (own: Own, use: Use, base: Base) => number | void | Promise<number | void>>
>

/**
 * Everything that a domain says of itself; nothing else in the tree names it. Facets are called
 * with what `create` made.
 */
export interface Module<Name extends string, Base, Use, Own> {
  /** Name of the service: `ssh_keys`. */
  name: Name
  /**
   * Makes the service. `use` holds the services of other modules: read them when they are needed,
   * since a module that comes later in the list is not there yet while this runs.
   */
  create: (base: Base, use: Use) => Own
  tags?: readonly ApiTag[]
  resources?: readonly ResourceKind[]
  parts?: readonly Parts[]
  sealed?: readonly SealedColumn[]
  /** Pools that steps of jobs name, with their sizes. */
  pools?: Readonly<Record<string, number>>
  jobs?(own: Own, use: Use, base: Base): readonly JobDefinition<any, any>[]
  schedules?: readonly ModuleSchedule<Own, Use, Base>[]
  /**
   * Forgets what is past its time, by what it is; a number says how much. It is called until that
   * is 0, with others in between, so that each call does no more than nobody notices; one that
   * returns a promise is called once and lets others in between by itself. See `forget.ts`. None of
   * it is called while the clock may be wrong.
   */
  retention?: Forgetting<Own, Use, Base>
  /** The same for what is kept within a size, whatever the clock says. */
  bounds?: Forgetting<Own, Use, Base>
  app?: AppFacet<Own>
  /** What the domain's instances in a project may use together, stopped ones too, since they may be started. */
  share?(own: Own, project_id: string): Share
  /**
   * Variables that a resource of a project, found by its name, offers to apps that name it, as in
   * `${{ orders.DATABASE_URL }}`; undefined when there is none of that name.
   */
  offers?(own: Own, project_id: string, name: string): Readonly<Record<string, string>> | undefined
  images?: ImageFacet<Own>
  /** Channels of the WebSocket: what clients can follow and open. */
  channels?(own: Own, use: Use, base: Base): readonly Channel[]
  /** After everything is composed, in the order of the list. */
  start?(own: Own, use: Use, base: Base): void | Promise<void>
  /** When the process ends, in the opposite order. */
  stop?(own: Own, use: Use, base: Base): void | Promise<void>
}
export type AnyModule = Module<string, any, any, any>

/** Declares a domain. The types of `use` say what it needs of others: a list that lacks it does not compile. */
export function defineModule<const Name extends string, Base, Use, Own>(
  declaration: Module<Name, Base, Use, Own>,
): Module<Name, Base, Use, Own> {
  return declaration
}

/** What the whole list declares, for modules that serve all others. Read it when it is needed, not before. */
export interface Declared {
  /** Kinds of resources in overviews of projects, or those that search knows. */
  sources(where: 'overview' | 'search'): readonly ResourceSource[]
  /** Project of a resource; undefined when there is none of that id, or no such noun. */
  locate(noun: string, id: string): string | undefined
  /** The resource that has this id, or a part with this id, as somebody sees it; undefined when there is none. */
  named(actor: Actor, id: string): ListedResource | undefined
  readonly nouns: readonly string[]
  readonly sealed: readonly SealedColumn[]
  readonly tags: readonly ApiTag[]
  /** What the first module that knows the name offers under it in a project. */
  offered(project_id: string, name: string): Readonly<Record<string, string>> | undefined
  /** What all instances in a project may use together. */
  share(project_id: string): Share
  images: {
    /** Ids and names of images that some module needs. */
    needed(): Promise<string[]>
    removed(image_id: string): void
  }
  /** Every channel of the WebSocket. */
  channels(): readonly Channel[]
  /** What apps take along. */
  app: {
    moved(app_id: string, from_project_id: string): void
    deleting(app_id: string): void
    /** Forgets piece by piece what gathered about an app; ends with the signal. */
    history(app_id: string, signal: AbortSignal): Promise<void>
    removed(app_id: string): void
    environment(app: OwnedApp): Record<string, string>
    /** Values that no log of the app may show, of one module after the other. */
    secrets(app: OwnedApp): Iterable<readonly string[]>
    fetch_secrets(app: OwnedApp): string[]
  }
}
