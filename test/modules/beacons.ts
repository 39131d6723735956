import * as v from 'valibot'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import type { Db } from '#server/kernel/db'
import { notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Projects } from '#server/projects/service'
import type { MountedRoute } from '#test/support/http-server'

/** A domain that exists in one test: what its folder, its migration, its routes and its line would hold. */
const MIGRATION = `CREATE TABLE beacons (
  id TEXT PRIMARY KEY, project_id TEXT NOT NULL REFERENCES projects (id), app_id TEXT, name TEXT NOT NULL,
  secret TEXT NOT NULL, created_at TEXT NOT NULL
) STRICT;`

interface BeaconRow {
  id: string
  project_id: string
  app_id: string | null
  name: string
}
const createBeaconRepository = (db: Db) => ({
  insert: (row: BeaconRow & { secret: string; created_at: string }) =>
    db.sql('INSERT INTO beacons VALUES (@id, @project_id, @app_id, @name, @secret, @created_at)').run(row),
  find: (id: string) => db.sql('SELECT * FROM beacons WHERE id = ?').get(id) as BeaconRow | undefined,
  move: (app_id: string, project_id: string) =>
    db.sql('UPDATE beacons SET project_id = ? WHERE app_id = ?').run(project_id, app_id),
  removeOf: (app_id: string) => db.sql('DELETE FROM beacons WHERE app_id = ?').run(app_id),
})

export const passes: string[] = []

export const beacons = defineModule({
  name: 'beacons',
  tags: [{ name: 'beacons', description: 'Lights that a test lights.', paths: /^beacons\b/ }],
  resources: [{ noun: 'beacon', prefix: 'cat', table: 'beacons', quota: 'beacons' }],
  sealed: [sealedById('beacons', 'secret')],
  create(
    { db, clock, secrets }: Base,
    use: {
      projects: Pick<Projects, 'requireQuota'>
      apps: { projectOf(id: string): string | undefined }
    },
  ) {
    const repository = createBeaconRepository(db)
    return {
      light: (project_id: string, name: string, app_id: string | null) =>
        db.tx(() => {
          use.projects.requireQuota(project_id, 'beacon')
          const id = newId('cat')
          const secret = secrets.seal(`secret of ${name}`, `beacons/secret/${id}`)
          const row = { id, project_id, app_id, name, secret, created_at: clock.iso() }
          repository.insert(row)
          return { id, name }
        }),
      get(id: string) {
        const row = repository.find(id)
        if (!row) throw notFound('beacon')
        return { id: row.id, name: row.name }
      },
      moved: (app_id: string) => repository.move(app_id, use.apps.projectOf(app_id)!),
      removed: repository.removeOf,
    }
  },
  channels: () => [
    {
      name: 'beacons/:id/flashes',
      kind: 'log',
      noun: 'beacon',
      log: {
        latest: () => 0,
        after: (id, seq) => (seq === 0 ? [{ seq: 1, text: `flash of ${id}` } as { seq: number }] : []),
        subscribe: () => () => undefined,
      },
    },
  ],
  schedules: [{ name: 'blink', cron: '* * * * *', run: () => passes.push('blink') }],
  retention: { beacons: () => (passes.includes('forget') ? 0 : passes.push('forget')) },
  app: {
    environment: (_own, { id }) => ({ BEACON_OF: id }),
    moved: (own, app_id) => void own.moved(app_id),
    removed: (own, app_id) => void own.removed(app_id),
  },
})

const Beacon = v.object({ id: v.string(), name: v.string() })
const NewBeacon = v.strictObject({
  project_id: v.optional(v.string()),
  name: v.pipe(v.string(), v.description('Its name.')),
  app_id: v.optional(v.string()),
})
interface Lit {
  beacons: { light(project_id: string, name: string, app_id: string | null): v.InferOutput<typeof Beacon> }
}
const routes = {
  post: endpoint({
    summary: 'Light a beacon',
    access: 'developer',
    scope: 'body',
    body: NewBeacon,
    example: { name: 'north' },
    status: 201,
    response: data(Beacon),
    handler: ({ body, project_id, services }) => ({
      data: (services as unknown as Lit).beacons.light(project_id, body.name, body.app_id ?? null),
    }),
  }),
  get: endpoint({
    summary: 'Look at a beacon',
    access: 'viewer',
    scope: { noun: 'beacon' },
    params: IdParam,
    response: data(Beacon),
    handler: ({ params, services }) => ({
      data: (
        services as unknown as { beacons: { get(id: string): { id: string; name: string } } }
      ).beacons.get(params.id),
    }),
  }),
}

export const BEACON_ENDPOINTS = [
  { method: 'post', path: '/api/beacons', definition: routes.post.definition },
  { method: 'get', path: '/api/beacons/:id', definition: routes.get.definition },
]
export const BEACON_DOMAIN = {
  module: beacons,
  migrations: [['9999_beacons.sql', MIGRATION]] as [string, string][],
  routes: [
    { method: 'post', path: '/api/beacons', load: () => ({ default: routes.post }) },
    { method: 'get', path: '/api/beacons/:id', load: () => ({ default: routes.get }) },
  ] satisfies MountedRoute[],
}
