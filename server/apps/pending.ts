import { differencesOf } from '#server/kernel/differences'
import * as v from 'valibot'
import { changedKeys, type Configuration, configurationOf } from './configuration.ts'
import { pendingPin, type PinPorts } from './pins.ts'
import type { AppRow } from './repository.ts'

const Value = (text: string) => v.pipe(v.nullable(v.string()), v.description(text))
/** One difference between the live release and the next one. */
export const PendingChange = v.pipe(
  v.object({
    key: v.pipe(
      v.string(),
      v.description('Field of the app, such as `build.start_command`; `mounts`; a variable as `env.<KEY>`.'),
      v.examples(['build.start_command']),
    ),
    before: Value(
      'As the live release has it: text, or JSON; null where it has none, `********` for a secret.',
    ),
    after: Value('As the next release gets it; null where it gets none, `********` for a secret.'),
    secret: v.pipe(v.boolean(), v.description('Whether the values are secret, and masked.')),
  }),
  v.title('PendingChange'),
)
export type PendingChange = v.InferOutput<typeof PendingChange>

export interface PendingPorts extends Pick<PinPorts, 'server' | 'nodeOf' | 'nameOfServer'> {
  liveConfiguration(release_id: string): Configuration | undefined
  /** Variables that a release does not have as they are now; secrets masked. */
  variableDifferences(
    app: AppRow,
    release_id: string,
  ): { key: string; before: string | null; after: string | null; secret: boolean }[]
  mounts(app_id: string): { id: string; path: string }[]
  releaseMountIds(release_id: string): string[]
}

/** What the next deployment of an app changes; nothing while none is live. */
export const createPendingChanges =
  (ports: PendingPorts) =>
  (row: AppRow): PendingChange[] => {
    const release_id = row.live_release_id
    const live = release_id ? ports.liveConfiguration(release_id) : undefined
    if (!release_id || !live) return []
    const now = configurationOf(row)
    const fields = changedKeys(live, now) as (keyof Configuration)[]
    const before = ports.releaseMountIds(release_id)
    const after = ports.mounts(row.id)
    const gone = before.filter((id) => !after.some((mount) => mount.id === id)).length
    const mount = { key: 'mounts', secret: false }
    const pin = pendingPin(row, ports)
    return [
      ...fields.flatMap((key) =>
        differencesOf(key, live[key], now[key]).map((one) => ({ ...one, secret: false })),
      ),
      ...(pin ? [{ key: 'node_id', ...pin, secret: false }] : []),
      // A mount that was removed is not kept anywhere but in the release.
      ...(gone > 0 ? [{ ...mount, before: gone === 1 ? '1 mount' : `${gone} mounts`, after: null }] : []),
      ...after
        .filter(({ id }) => !before.includes(id))
        .map(({ path }) => ({ ...mount, before: null, after: path })),
      ...ports
        .variableDifferences(row, release_id)
        .map(({ key, ...values }) => ({ key: `env.${key}`, ...values })),
    ]
  }
