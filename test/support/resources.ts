import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Caller, TestApi } from './api.ts'
import { ROOT } from './routes.ts'

/** What a fixture of resources works with. */
export interface FixtureWorld {
  api: TestApi
  /** One call of the caller that makes them; the `data` of the answer. */
  call(method: 'get' | 'post' | 'put', path: string, body?: unknown): Promise<any>
  project_id: string
  /** A lower-case word that every name and address holds. */
  mark: string
  /** Ids of what was made before, by noun. */
  ids: Readonly<Record<string, string>>
}
/** How tests make one resource of each noun of a domain: `test/<domain>/fixture.ts`, its default export. */
export interface ResourceFixture {
  /** Nouns that must be there before. */
  needs?: readonly string[]
  make(world: FixtureWorld): Promise<Record<string, string>>
}

async function readFixtures(): Promise<ResourceFixture[]> {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /^[a-z-]+\/fixture\.ts$/.test(name))
    .sort()
  return Promise.all(
    files.map(
      async (file) =>
        ((await import(pathToFileURL(join(ROOT, 'test', file)).href)) as { default: ResourceFixture })
          .default,
    ),
  )
}

/** Makes one resource of every kind that some domain has a fixture for; returns their ids by noun. */
export async function makeResources(
  api: TestApi,
  caller: Caller,
  { project_id, mark }: Pick<FixtureWorld, 'project_id' | 'mark'>,
  added: readonly ResourceFixture[] = [],
): Promise<Record<string, string>> {
  const ids: Record<string, string> = { project: project_id }
  const call: FixtureWorld['call'] = async (method, path, body) => {
    const answer = await api.request(method.toUpperCase(), path, { as: caller, body })
    if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status} ${answer.text}`)
    return answer.body.data
  }
  let left = [...(await readFixtures()), ...added]
  while (left.length > 0) {
    const ready = left.filter(({ needs = [] }) => needs.every((noun) => noun in ids))
    if (ready.length === 0)
      throw new Error(`No fixture makes ${left.flatMap(({ needs = [] }) => needs).join(', ')}.`)
    for (const fixture of ready) Object.assign(ids, await fixture.make({ api, call, project_id, mark, ids }))
    left = left.filter((fixture) => !ready.includes(fixture))
  }
  return ids
}
