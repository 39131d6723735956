import type { AppCopy } from './app-copy.ts'
import type { AppPorts } from './app-ports.ts'

type PartPorts = Pick<AppPorts, 'volumes' | 'databases' | 'env'>

/** What of an app has data of its own. */
export function createAppParts(ports: () => PartPorts) {
  const volumesOf = (app_id: string) =>
    [
      ...new Set(
        ports()
          .volumes.releaseMounts(app_id)
          .volumes.map(({ volume_id }) => volume_id),
      ),
    ].flatMap((id) => ports().volumes.find(id) ?? [])
  /** Databases by links, and those that variables name. */
  const databasesOf = (app_id: string, project_id: string, variables: AppCopy['variables']) => {
    const { databases } = ports()
    const linked = databases.linkedTo(app_id)
    const named = new Set(ports().env.ownersIn(variables))
    const by_reference = databases
      .inProject(project_id)
      .filter(({ id, name }) => named.has(name) && !linked.some((one) => one.id === id))
    return [
      ...linked.flatMap(({ id, key }) => {
        const row = databases.find(id)
        return row ? [{ row, key: key as string | null }] : []
      }),
      ...by_reference.map((row) => ({ row, key: null })),
    ]
  }
  return {
    volumesOf,
    databasesOf,
    /** Ids of both. */
    ids: ({ id, project_id }: { id: string; project_id: string }): string[] => [
      ...volumesOf(id).map((volume) => volume.id),
      ...databasesOf(id, project_id, ports().env.snapshot(id)).map(({ row }) => row.id),
    ],
  }
}
