import { basename, resolve } from 'node:path'
import { CommandError } from '../terminal.ts'
import { dataOf, type Schemas } from './api.ts'
import { EXIT } from './exit-codes.ts'
import type { Session } from './session.ts'

export type App = Schemas['App']
export interface AppOption {
  app?: string
}

const PER_PAGE = 100

/** The app that a call names, as an argument or as an option; throws where they name two. */
export function namedApp(argument: string | undefined, { app }: AppOption): string | undefined {
  if (argument !== undefined && app !== undefined && argument !== app)
    throw new CommandError(`Two apps are named, ${argument} and ${app}: one is meant.`, EXIT.USAGE)
  return argument ?? app
}

/** The name that a folder gives an app: a DNS label made of the name of the folder. */
export function nameOfFolder(folder: string): string {
  return basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 63)
}

/** The app that is meant: named, from the environment, or called like the folder. */
export const appName = (named: string | undefined, folder = '.'): string =>
  named ?? (process.env.PORTREEVE_APP || nameOfFolder(folder))

/** All pages of a list. */
export async function all<T>(
  page: (query: { page: number; per_page: number }) => Promise<{ data: T[]; pages: number }>,
): Promise<T[]> {
  const found: T[] = []
  for (let number = 1; ; number++) {
    const answer = await page({ page: number, per_page: PER_PAGE })
    found.push(...answer.data)
    if (number >= answer.pages) return found
  }
}

/** The id of an app; undefined when there is none of that name. */
export async function findAppId({ api }: Session, name: string): Promise<string | undefined> {
  if (/^app_[0-9a-z]+$/.test(name)) return name
  const found = await all((query) =>
    dataOf(api.GET('/api/apps', { params: { query: { ...query, q: name.slice(0, 100) } } })),
  )
  return found.find((app) => app.name === name)?.id
}

/** The id of an app; throws when there is none. */
export async function appId(session: Session, named: string | undefined): Promise<string> {
  const name = appName(named)
  const id = await findAppId(session, name)
  if (id === undefined)
    throw new CommandError(
      name === ''
        ? 'This folder has no name that an app could have. Name one with --app, or see: portreeve apps'
        : `There is no app ${name} on ${session.name}. Name one with --app, or see: portreeve apps`,
      EXIT.NOT_FOUND,
    )
  return id
}

export async function getApp(session: Session, named: string | undefined): Promise<App> {
  const id = await appId(session, named)
  return (await dataOf(session.api.GET('/api/apps/{id}', { params: { path: { id } } }))).data
}
