import { afterEach, beforeEach } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'
export const DAY_MS = 86_400_000
export let api: TestApi
/** An app of the default project. */
export let app_id: string
/** Where names have to lead. */
export let addresses: string[]

/** Starts a server with an app; what is given here is set beside the base domain. */
export async function start(environment: Record<string, string> = {}): Promise<void> {
  api = await createTestApi({
    environment: { PORTREEVE_BASE_DOMAIN: 'apps.example.net', ...environment },
  })
  api.fakes.git.commit(URL, 'main', {
    'package.json': '{"scripts":{"start":"node server.js"}}',
    'server.js': '',
  })
  app_id = await createApp('shop')
  addresses = api.services.addresses
    .of_server()
    .filter((address) => !address.includes(':'))
    .slice(0, 1)
}
/** Each test has a server of its own. */
export function useDomains(): void {
  beforeEach(() => start())
  afterEach(() => api.close())
}

export async function createApp(name: string, project_id?: string): Promise<string> {
  const { body } = await api.as('admin').post('/api/apps', {
    name,
    git_url: URL,
    soak_seconds: 0,
    ...(project_id ? { project_id } : {}),
  })
  await api.services.jobs.idle()
  return body.data.id as string
}
/** A project with an app that the callers of the default project do not see. */
export async function otherProject(): Promise<{ project_id: string; app_id: string }> {
  const project_id = (await api.as('admin').post('/api/projects', { name: 'other' })).body.data.id as string
  return { project_id, app_id: await createApp('theirs', project_id) }
}
export const add = (hostname: string, rest: object = {}, to = app_id) =>
  api.as('admin').post('/api/domains', { app_id: to, hostname, ...rest })
/** Looks a domain up now, and tells it as it is then. */
export const verify = async (domain_id: string) =>
  (await api.as('admin').post('/api/domains/verify', { domain_id })).body.data
/** What its owner sets as the text. */
export const textOf = ({ dns_records }: { dns_records: { type: string; value: string }[] }) =>
  dns_records.find(({ type }) => type === 'TXT')!.value
/** Waits for what happens in the background. */
export async function settled(): Promise<void> {
  await api.services.domains.checks.idle()
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
}
export async function addProven(hostname: string, rest: object = {}, to = app_id): Promise<any> {
  api.fakes.dns.set(hostname, { A: addresses })
  const { body } = await add(hostname, rest, to)
  await settled()
  return (await api.as('admin').get(`/api/domains/${body.data.id}`)).body.data
}
export const routeOf = (id: string) => api.fakes.ingress.routes.get(id)
export const typesSince = (seq: number) =>
  api
    .events(seq)
    .map(({ type }) => type)
    .filter((type) => type.startsWith('domain.'))
