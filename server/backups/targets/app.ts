import { Readable } from 'node:stream'
import { conflict } from '#server/kernel/errors'
import { Fatal } from '#server/kernel/jobs/definition'
import { packSections, readSections, type Section } from '../archive/bundle.ts'
import type { BackupTarget, Contents, DumpOptions } from '../target.ts'
import type { VolumeFiles } from '../volume-files.ts'
import { type AppCopy, readCopy, withinProject } from './app-copy.ts'
import { createAppParts } from './app-parts.ts'
import type { AppPorts } from './app-ports.ts'
import { createAppRestore } from './app-restore.ts'
import { dataFor, dropPlace, emptyPlace, whilePaused } from './volume.ts'

/** One text as the bytes of a section. */
const textBytes = (text: string): AsyncIterable<Uint8Array> => Readable.from([Buffer.from(text)])

/** A whole app: its configuration and variables, what is in its volumes, and the databases that it is linked to. */
export function createAppTarget(
  ports: () => AppPorts,
  files: VolumeFiles,
  database: BackupTarget,
): BackupTarget {
  const { volumesOf, databasesOf } = createAppParts(ports)
  const partsOf = (app_id: string, project_id: string, without: DumpOptions['without']) => {
    const variables = ports().env.snapshot(app_id)
    const used = volumesOf(app_id)
    const isHeld = ({ status }: (typeof used)[number]) =>
      !without.includes('volumes') && !(without.includes('lost_volumes') && status === 'missing')
    const is_without_databases = without.includes('databases')
    return {
      variables,
      volumes: used.filter(isHeld),
      databases: is_without_databases ? [] : databasesOf(app_id, project_id, variables),
      kept: {
        volumes: used.filter((one) => !isHeld(one)),
        databases: is_without_databases ? ports().databases.linkedTo(app_id) : [],
      },
    }
  }
  /** Apps that stand still while an app is read: it, and those that write to its volumes as well. */
  function standing(app_id: string): string[] {
    const project_id = ports().apps.find(app_id)?.project_id
    if (project_id === undefined) return [app_id]
    const volume_ids = volumesOf(app_id).map((volume) => volume.id)
    return [...new Set([app_id, ...ports().deployments.holders.of(project_id, volume_ids)])]
  }
  function copyOf(
    { id: app_id, name, project_id }: { id: string; name: string; project_id: string },
    parts: ReturnType<typeof partsOf>,
  ): AppCopy {
    const mounts = ports().volumes.releaseMounts(app_id)
    const { kept } = parts
    const names = new Map([...parts.volumes, ...kept.volumes].map(({ id, name }) => [id, name]))
    return {
      format: 1,
      name,
      project_id,
      commit: ports().deployments.liveCommit(app_id),
      app: ports().apps.snapshot(app_id),
      variables: parts.variables,
      volumes: parts.volumes.map(({ id, name, access, size_bytes }) => ({ id, name, access, size_bytes })),
      mounts: mounts.volumes.flatMap(({ path, volume_id, read_only }) => {
        const volume = names.get(volume_id)
        return volume === undefined ? [] : [{ path, volume, read_only }]
      }),
      files: mounts.files.map(({ path, content, mode }) => ({ path, content, mode })),
      databases: parts.databases.map(({ row, key }) => ({
        ...{ name: row.name, engine: row.engine, version: row.version, key },
        ...{ cpus: row.cpus, memory_bytes: row.memory_bytes },
      })),
      kept: {
        volumes: kept.volumes.map(({ id, name }) => ({ id, name })),
        databases: kept.databases.map(({ id, name, key }) => ({ id, name, key })),
      },
      domains: ports().domains.copies.snapshot(app_id),
      cron_jobs: ports().cron.copies.snapshot(app_id) as AppCopy['cron_jobs'],
    }
  }
  async function* sectionsOf(
    app: { id: string; name: string; project_id: string },
    { work_id, without }: DumpOptions,
    signal: AbortSignal,
  ): AsyncGenerator<Section> {
    if (without.includes('lost_volumes')) await ports().volumes.lookFor(volumesOf(app.id).map(({ id }) => id))
    const parts = partsOf(app.id, app.project_id, without)
    yield { name: 'app.json', bytes: textBytes(JSON.stringify(copyOf(app, parts))) }
    for (const { id, name, project_id } of parts.volumes) {
      const data_id = ports().volumes.dataOf(id)
      yield { name: `volumes/${name}.tar`, bytes: files.read({ data_id, project_id, work_id }, signal) }
    }
    for (const { row } of parts.databases) {
      const dump = await database.dump(row.id, { pause_app: false, work_id, without: [] }, signal)
      yield { name: `databases/${row.name}.${dump.extension}`, bytes: dump.bytes }
    }
  }

  return {
    kind: 'app',
    extension: () => 'tar',
    find(id) {
      const row = id === null ? undefined : ports().apps.find(id)
      if (!row) return undefined
      const { name, project_id } = row
      return { id: row.id, name, project_id, engine: null, version: null, apps: [name] }
    },
    requireReadable(id) {
      const row = ports().apps.find(id!)!
      if (row.status === 'deleting') throw conflict('Cannot back up an app while it is being deleted.')
      if (row.preview_id !== null)
        throw conflict(
          `${row.name} is a preview: what it holds is made anew for each pull request. Back up the app that it is a preview of.`,
        )
      const { databases, volumes } = partsOf(row.id, row.project_id, [])
      for (const one of databases) database.requireReadable(one.row.id)
      const lost = volumes.find(({ status }) => status !== 'ready')
      if (lost) throw conflict(`Cannot back up the app while its volume ${lost.name} is ${lost.status}.`)
    },
    lanes: (id, { pause_app }) => (pause_app ? standing(id!).map((app) => `app:${app}`) : []),
    async dump(id, options, signal) {
      const app = ports().apps.find(id!)
      if (!app) throw new Fatal('gone', 'The app is gone.')
      const bytes = packSections(sectionsOf(app, options, signal))
      if (!options.pause_app) return { bytes, extension: 'tar' }
      return { bytes: whilePaused(ports().deployments.holders, standing(app.id), bytes), extension: 'tar' }
    },
    tidy: (work_id) => files.discard(work_id),
    async verify(backup, open, signal) {
      const work_id = `trial_${backup.id.split('_').at(-1)}`
      // What an attempt before was trying when it broke off holds the one volume that all trials of a backup have.
      await files.discard(work_id)
      await database.tidy?.(backup.id)
      const found = { counts: {} as Record<string, number>, objects: 0, rows: 0 }
      let copy: AppCopy | undefined
      for await (const { name, bytes } of readSections(open())) {
        copy ??= within(await readCopy(bytes))
        if (name === 'app.json') continue
        const [kind, file] = name.split('/') as [string, string]
        // What stays in the project that the app has left is not told where it is now.
        const parts: readonly { name: string }[] = kind === 'volumes' ? copy.volumes : copy.databases
        if (!parts.some((one) => one.name === file.split('.')[0])) continue
        const one = kind === 'volumes' ? await tryVolume(bytes) : await tryDatabase(file, bytes, copy)
        const values = Object.values(one.counts)
        const sum = one.rows ?? values.reduce((total, count) => total + count, 0)
        found.counts[name] = sum
        found.objects += one.objects ?? values.length
        if (kind === 'databases') found.rows += sum
      }
      return found

      function within(given: AppCopy): AppCopy {
        return withinProject(given, backup.project_id, (id) => ports().volumes.find(id)?.project_id).copy
      }
      async function tryVolume(bytes: AsyncIterable<Uint8Array>): Promise<Contents> {
        const place = { data_id: dataFor(work_id), project_id: backup.project_id, work_id }
        try {
          await emptyPlace(ports().volumes, files, backup.target_id ?? backup.id, place)
          await files.write(place, bytes, signal)
          const { counts, objects, bytes: rows } = await files.count(place, signal)
          return { counts, objects, rows }
        } finally {
          await dropPlace(ports().volumes, files, place)
        }
      }
      async function tryDatabase(file: string, bytes: AsyncIterable<Uint8Array>, { databases }: AppCopy) {
        const name = file.split('.')[0]!
        const known = databases.find((one) => one.name === name)
        const trial = {
          ...backup,
          target_id: null,
          engine: known?.engine ?? null,
          version: known?.version ?? null,
        }
        return database.verify(trial, () => bytes, signal)
      }
    },
    restore: createAppRestore(ports, files, database.restore!),
  }
}
