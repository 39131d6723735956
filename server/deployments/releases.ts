import type { Configuration } from '#server/apps/configuration'
import { type ReleaseVariables, secretValuesOf } from '#server/env/resolved'
import type { Db } from '#server/kernel/db'
import { mapInPieces } from '#server/kernel/pace'
import { openReadable, type Secrets } from '#server/kernel/secrets'
import type { Mount, Reservations } from '#server/platform/engine/workload'
import type { ReleaseScale } from '#server/scaling/contract'
import { createImageReader, imagesOf, type ReleaseImages } from './release-images.ts'
import { createReplacement, sealedFor } from './release-secrets.ts'
import { scaledConfiguration, scaledSettings } from './release-scale.ts'

/** How a release runs; immutable but for what `ReleaseScale` may change. */
export interface ReleaseSettings {
  /** Services of a compose file, each after those that it depends on; such a release has no other processes. */
  stack?: ReleaseService[]
  /** The service that gets the app's own name; absent where no service of the stack takes requests. */
  main?: string
  /** Line of shell that replaces the image's command, run inside the container. */
  shell_command: string | null
  release_command: string | null
  port: number
  health_check: {
    type: 'http' | 'tcp'
    path: string /** Given by the user or the repository, so that only a good answer counts. */
    strict: boolean
    interval_ms: number
    timeout_ms: number
    grace_s: number
  }
  limits: { cpus: number; memory_bytes: number; pids: number }
  /** What each instance gets first when the server is short of it. */
  reservations?: Reservations
  replicas: number
  stop_grace_s: number
  /** Whether a process takes requests; absent in releases from before there were others. */
  web?: boolean
  /** Processes beside it. */
  processes?: ReleaseProcess[]
  /** Absent in releases from before there were mounts. */
  mounts?: ReleaseMounts
}
/** One process of a release: all of its instances have the same command and limits. */
export interface ReleaseProcess {
  name: string
  /** Line of shell; null for the image's own command. */
  shell_command: string | null
  replicas: number
  limits: ReleaseSettings['limits']
  /** How long an instance must stay up to count as ready. */
  grace_s: number
}
/**
 * A service of a compose file as one release runs it. Its environment, its files and its words,
 * into which the file may put the values of variables, are sealed apart.
 */
export interface ReleaseService {
  name: string
  /** The release that made its containers: one that did not change keeps those of an earlier release. */
  made_by: string
  /** Differs whenever anything about the service does, and tells nothing about its secrets. */
  fingerprint: string
  /** Name of the image in the file; null for one that was built. */
  reference: string | null
  image_id: string
  /** Tag of an image that was built for it. */
  image_tag: string | null
  user: string | null
  read_only: boolean
  volumes: Extract<Mount, { kind: 'volume' }>[]
  memory: Extract<Mount, { kind: 'memory' }>[]
  aliases: string[]
  /** Port that gets a domain; null for a service that only others of the stack reach. */
  public_port: number | null
  /** Path that is asked for to find out whether it is ready; null to connect only. */
  health_path: string | null
  /** When a command inside the container is asked whether it is healthy; null where the file has none. */
  health_check: Omit<ServiceHealthCheck, 'command'> | null
  depends_on: { service: string; condition: string }[]
  replicas: number
  limits: ReleaseSettings['limits']
  stop_grace_s: number
  /** Whether it runs to its end, once for each release that changes it. */
  one_off: boolean
  /** Names of the app's variables that it uses. */
  variables: string[]
}
export interface ServiceHealthCheck {
  command: string[]
  interval_ms: number
  timeout_ms: number
  retries: number
  start_period_ms: number
}
/** What a service is started and asked with; null for what its image says. */
export interface ServiceWords {
  entrypoint: string[] | null
  command: string[] | null
  working_dir: string | null
  health_command: string[] | null
}
/** What of a service must not be readable in the rows. */
export interface ServiceSecrets {
  environment: Record<string, string>
  files: FileMount[]
  /** Absent in releases from before they were sealed. */
  words?: ServiceWords
}
/** Mounts of a release; the text of its files is sealed apart. */
export interface ReleaseMounts {
  /** Ids of the app's mounts, sorted. */
  ids: string[]
  volumes: Extract<Mount, { kind: 'volume' }>[]
  /** Volumes that the release writes to and no other instance may. */
  exclusive: string[]
}
type FileMount = Extract<Mount, { kind: 'file' }>
export interface Release {
  id: string
  app_id: string
  deployment_id: string
  image_id: string
  image_tag: string | null
  image_present: boolean
  commit_sha: string | null
  build_key: string | null
  settings: ReleaseSettings
  configuration: Configuration
  proven: boolean
  /** The added server that its instances are on; null for that of Portreeve. */
  node_id: string | null
  created_at: string
}
interface Row extends Omit<Release, 'settings' | 'configuration' | 'image_present' | 'proven'> {
  settings: string
  configuration: string
  image_present: number
  proven: number
}
/** All but what is sealed: an app has a release for each of its deployments, and many are read at once. */
const COLUMNS =
  'id, app_id, deployment_id, image_id, image_tag, image_present, commit_sha, build_key, settings, configuration, proven, node_id, created_at'

/** Fields that releases from before them lack. */
const DEFAULTS: Partial<Configuration> = { processes: {} }

const readWith = (scale: ReleaseScale | undefined, row: Row): Release => {
  const settings = JSON.parse(row.settings) as ReleaseSettings
  const configuration = {
    ...DEFAULTS,
    ...(JSON.parse(row.configuration) as Partial<Configuration>),
  } as Configuration
  return {
    ...row,
    settings: scale ? scaledSettings(settings, configuration, scale) : settings,
    configuration: scale ? scaledConfiguration(configuration, scale) : configuration,
    image_present: row.image_present === 1,
    proven: row.proven === 1,
  }
}

/**
 * Releases with their sealed environment.
 * @param kept of so many releases of an app the images are never removed.
 * @param dataOf which data a volume has now: a restore puts others in their place.
 * @param scaleOf how a release is scaled now; nothing where it is as it was made.
 */
export function createReleases(
  db: Db,
  secrets: Secrets,
  kept: () => number,
  dataOf: (volume_id: string) => string,
  scaleOf: (release: { id: string; app_id: string }) => ReleaseScale | undefined,
) {
  const read = (row: Row): Release => readWith(scaleOf(row), row)
  const find = (id: string) => {
    const row = db.sql(`SELECT ${COLUMNS} FROM releases WHERE id = ?`).get(id) as Row | undefined
    return row && read(row)
  }
  const many = (where: string, ...values: unknown[]) =>
    (db.sql(`SELECT ${COLUMNS} FROM releases WHERE ${where}`).all(...values) as Row[]).map(read)
  const withImages = createImageReader(db)
  const keptOf = (app_id: string): ReleaseImages[] =>
    withImages(
      `rowid IN (SELECT MAX(rowid) FROM releases WHERE app_id = ? AND proven = 1 GROUP BY image_id ORDER BY MAX(rowid) DESC LIMIT ?) ORDER BY rowid DESC`,
      app_id,
      kept(),
    )
  const current = (mounts: ReleaseMounts['volumes']): ReleaseMounts['volumes'] =>
    mounts.map((mount) => ({ ...mount, volume_id: dataOf(mount.volume_id) }))
  return {
    find,
    /** Makes the release of a deployment; a second call after a crash finds the first one. */
    ensure(
      release: Omit<Release, 'image_present' | 'proven'>,
      environment: Record<string, string>,
      variables: ReleaseVariables,
      files: readonly FileMount[] = [],
      services?: Record<string, ServiceSecrets>,
    ): Release {
      const row = {
        ...release,
        settings: JSON.stringify(release.settings),
        configuration: JSON.stringify(release.configuration),
        environment: secrets.seal(JSON.stringify(environment), sealedFor.environment(release.id)),
        variables: secrets.seal(JSON.stringify(variables), sealedFor.variables(release.id)),
        files: files.length > 0 ? secrets.seal(JSON.stringify(files), sealedFor.files(release.id)) : null,
        services: services ? secrets.seal(JSON.stringify(services), sealedFor.services(release.id)) : null,
      }
      db.sql(
        `INSERT OR IGNORE INTO releases (id, app_id, deployment_id, image_id, image_tag, commit_sha, build_key, settings, environment, variables, files, services, configuration, node_id, created_at)
         VALUES (@id, @app_id, @deployment_id, @image_id, @image_tag, @commit_sha, @build_key, @settings, @environment, @variables, @files, @services, @configuration, @node_id, @created_at)`,
      ).run(row)
      return find(release.id)!
    },
    /**
     * Environment in clear. Throws SecretUnreadableError: a release never starts with an empty one
     * instead.
     */
    environment(id: string): Record<string, string> {
      const sealed = db.sql('SELECT environment FROM releases WHERE id = ?').pluck().get(id) as string
      return JSON.parse(secrets.open(sealed, sealedFor.environment(id))) as Record<string, string>
    },
    /** The variables that the environment was made of, in clear; none of a release from before there were any. */
    variables(id: string): ReleaseVariables {
      const sealed = db.sql('SELECT variables FROM releases WHERE id = ?').pluck().get(id) as string | null
      return sealed ? (JSON.parse(secrets.open(sealed, sealedFor.variables(id))) as ReleaseVariables) : {}
    },
    /**
     * Secrets of what may still print them: the newest releases of an app, and those that can be
     * rolled back to. What cannot be read cannot be printed either.
     */
    *secretValues(app_id: string): Generator<readonly string[]> {
      const rows = db
        .sql(
          'SELECT id, variables FROM releases WHERE app_id = ? AND variables IS NOT NULL ORDER BY rowid DESC LIMIT 8',
        )
        .all(app_id) as { id: string; variables: string }[]
      for (const { id, variables } of rows)
        yield openReadable(secrets, [[variables, sealedFor.variables(id)]]).flatMap((text) =>
          secretValuesOf(JSON.parse(text) as ReleaseVariables),
        )
    },
    replaceCredentials: createReplacement(db, secrets),
    /** What the engine mounts for the volumes of a release. */
    volumes: ({ settings }: Pick<Release, 'settings'>): ReleaseMounts['volumes'] =>
      current(settings.mounts?.volumes ?? []),
    dataOf: current,
    /** Inline files in clear. Throws SecretUnreadableError. */
    files(id: string): FileMount[] {
      const sealed = db.sql('SELECT files FROM releases WHERE id = ?').pluck().get(id) as string | null
      return sealed ? (JSON.parse(secrets.open(sealed, sealedFor.files(id))) as FileMount[]) : []
    },
    /** Environment and files of each service of a stack, in clear. Throws SecretUnreadableError. */
    services(id: string): Record<string, ServiceSecrets> {
      const sealed = db.sql('SELECT services FROM releases WHERE id = ?').pluck().get(id) as string | null
      return sealed
        ? (JSON.parse(secrets.open(sealed, sealedFor.services(id))) as Record<string, ServiceSecrets>)
        : {}
    },
    /** The newest release built from the same commit and build configuration whose image is still here. */
    findBuilt: (app_id: string, build_key: string): Release | undefined =>
      many(
        'app_id = ? AND build_key = ? AND image_present = 1 ORDER BY rowid DESC LIMIT 1',
        app_id,
        build_key,
      )[0],
    /** Proven releases of an app by their ids and deployments, newest first. */
    proven: (app_id: string) =>
      db
        .sql('SELECT id, deployment_id FROM releases WHERE app_id = ? AND proven = 1 ORDER BY rowid DESC')
        .all(app_id) as Pick<Release, 'id' | 'deployment_id'>[],
    /**
     * The newest of each image whose image is kept: restarts and rollbacks, which run an older
     * image, take nobody's place.
     */
    kept: keptOf,
    /** Deployment that made a release. */
    deploymentOf: (id: string) =>
      db.sql('SELECT deployment_id FROM releases WHERE id = ?').pluck().get(id) as string | undefined,
    /** Deployments of these releases, and of those that made their services. */
    deploymentsOf: (ids: readonly string[]): string[] =>
      db
        .sql(
          `WITH needed AS (SELECT id, deployment_id, settings FROM releases
                           WHERE id IN (SELECT value FROM json_each(?)))
           SELECT deployment_id FROM needed
           UNION SELECT deployment_id FROM releases WHERE id IN (
             SELECT service.value ->> 'made_by' FROM needed, json_each(needed.settings, '$.stack') AS service)`,
        )
        .pluck()
        .all(JSON.stringify(ids)) as string[],
    /** Images that releases to roll back to, and those that are being made, need. */
    async neededImages(): Promise<string[]> {
      const apps = db.sql('SELECT DISTINCT app_id FROM releases').pluck().all() as string[]
      const images = await mapInPieces('images', apps, (app_id) => keptOf(app_id).flatMap(imagesOf))
      // Those that are being made last: others were served meanwhile.
      return [...images.flat(), ...withImages('proven = 0').flatMap(imagesOf)]
    },
    /** Which of these releases are on added servers, and on which. */
    placed: (ids: readonly string[]) =>
      db
        .sql(
          `SELECT id, node_id FROM releases WHERE node_id IS NOT NULL AND id IN (SELECT value FROM json_each(?))`,
        )
        .all(JSON.stringify(ids)) as { id: string; node_id: string }[],
    /** Whether any release ever was on an added server that is still known. */
    anyPlaced: (): boolean =>
      db.sql('SELECT 1 FROM releases WHERE node_id IS NOT NULL LIMIT 1').get() !== undefined,
    hasAny: (app_id: string): boolean =>
      db.sql('SELECT 1 FROM releases WHERE app_id = ? LIMIT 1').get(app_id) !== undefined,
    /** Images of an app that are still here, by the releases that run them. */
    withImages: (app_id: string) => withImages('app_id = ? AND image_present = 1', app_id),
    /** Volumes of a compose app that releases mounted which served, or that of this id. */
    servedVolumes: (app_id: string, live_id: string | null) =>
      new Set(
        db
          .sql(
            `SELECT DISTINCT volume.value ->> 'volume_id' FROM releases, json_each(settings, '$.stack') AS service,
               json_each(service.value, '$.volumes') AS volume WHERE app_id = ? AND (proven = 1 OR releases.id = ?)`,
          )
          .pluck()
          .all(app_id, live_id) as string[],
      ),
    ofDeployment: (deployment_id: string): Release | undefined => many('deployment_id = ?', deployment_id)[0],
    markProven: (id: string) => db.sql('UPDATE releases SET proven = 1 WHERE id = ?').run(id),
    markImageGone: (image_id: string) =>
      // Those of a stack stand in its services.
      db
        .sql(
          'UPDATE releases SET image_present = 0 WHERE image_id = @image_id OR instr(settings, json_quote(@image_id)) > 0',
        )
        .run({ image_id }),
    imageInUse: (image_id: string): boolean =>
      db.sql('SELECT 1 FROM releases WHERE image_id = ? LIMIT 1').get(image_id) !== undefined,
    /** Whose release it is and where it was placed; undefined where there is none of that id. */
    placeOf: (id: string) =>
      db.sql('SELECT app_id, node_id FROM releases WHERE id = ?').get(id) as
        | { app_id: string; node_id: string | null }
        | undefined,
    delete: (id: string) => db.sql('DELETE FROM releases WHERE id = ?').run(id),
  }
}
export type Releases = ReturnType<typeof createReleases>
