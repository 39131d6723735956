import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { hostname, release } from 'node:os'
import { directories } from '#server/kernel/directories'
import { buildGroup } from '#server/platform/engine/cgroups'
import { createConnection, type Connection } from '#server/platform/engine/connection'
import { EngineError } from '#server/platform/engine/engine'
import { type Components, runcVersion, takesLinksForDevices } from '#server/platform/engine/runc'
import { edgeName } from '#server/platform/ingress/edge-name'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import { findPortOwner } from '#server/platform/ingress/port-owner'
import { faultOfEdge } from '#server/platform/ingress/version'
import { sizeOf } from '../sizes.ts'
import { type Check, fault, type Finding, note, ok, type Patient, reasonOf } from './finding.ts'

interface Info {
  Name?: string
  KernelVersion?: string
  ServerVersion?: string
  Driver?: string
  DockerRootDir?: string
  CgroupDriver?: string
  CgroupVersion?: string
  SecurityOptions?: string[] | null
}
interface Version extends Components {
  Version: string
  ApiVersion: string
}

interface EdgeImage {
  Id?: string
  Config?: { Env?: string[] }
}

const ENGINE_MS = 5_000
const SCARCE_BYTES = 4 * 1024 ** 3
/** Kernel memory of steps that ended is added to what a build may use, up to here. */
const MUCH_HELD_BYTES = 512 * 1024 ** 2
const API_WITH_BUILDKIT = 1.39

async function asking(
  { config }: Patient,
  look: (
    call: <T>(path: string, accept?: number[]) => Promise<T>,
    connection: Connection,
  ) => Promise<Finding>,
): Promise<Finding> {
  const connection = createConnection(config.docker_host)
  try {
    return await look((path, accept) => connection.call({ path, accept, deadline_ms: ENGINE_MS }), connection)
  } catch (error) {
    const hint = error instanceof EngineError ? error.hint : undefined
    return fault(
      `${reasonOf(error)} (${config.docker_host})`,
      hint ?? 'Start the engine, or set DOCKER_HOST to where it listens.',
    )
  } finally {
    connection.close()
  }
}

/** What an image of HAProxy says of its version; nothing where it was made of packages. */
const versionIn = (image: EdgeImage | undefined): string =>
  image?.Config?.Env?.find((line) => line.startsWith('HAPROXY_VERSION='))?.split('=')[1] ?? ''
const renewalOf = ({ config }: Patient): string =>
  `Fetch its image and have it made anew: docker pull ${EDGE_IMAGE} && docker rm -f ${edgeName(directories(config.data_directory).ingress)}`

const isHere = ({ Name, KernelVersion }: Info) => Name === hostname() && KernelVersion === release()

function lookAtLimits(info: Info, api: number, is_local: boolean): Finding {
  const without = (why: string, remedy: string) =>
    note(`Builds go without BuildKit, its caches and secrets, since ${why}.`, remedy)
  if (api < API_WITH_BUILDKIT) return without('this engine has none', 'Install a newer engine.')
  if (!is_local || !isHere(info))
    return without('the engine is not on this machine', 'Run Portreeve beside its engine.')
  if (process.getuid?.() !== 0) return without('this user cannot limit it', 'Run Portreeve as root.')
  const layout = {
    driver: info.CgroupDriver === 'systemd' ? 'systemd' : 'cgroupfs',
    version: info.CgroupVersion === '2' ? 2 : 1,
  } as const
  const tree = layout.version === 2 ? '/sys/fs/cgroup' : '/sys/fs/cgroup/memory'
  try {
    accessSync(tree, constants.W_OK)
  } catch {
    return without(`${tree} cannot be written`, 'Mount the control groups for writing.')
  }
  const held = buildGroup(layout).held()
  if (held > MUCH_HELD_BYTES)
    return note(
      `Builds can be limited (cgroup v${layout.version}, ${layout.driver}), but steps that ended still hold ${sizeOf(held)} of kernel memory.`,
      'A restart of the machine gives it back.',
    )
  return ok(`Builds use BuildKit and can be limited (cgroup v${layout.version}, ${layout.driver}).`)
}

/** What is wrong with a port of the edge; nothing when it is the edge's, or free for it. */
async function lookAtPort(
  patient: Patient,
  [port, name]: readonly [number, string],
  edge_runs: boolean,
): Promise<Finding | undefined> {
  const owner = await findPortOwner(port)
  if (owner === undefined)
    return patient.is_running && edge_runs
      ? fault(`Nothing listens on port ${port}, although the edge runs.`, 'Look at the log of its container.')
      : undefined
  if (edge_runs && /^(haproxy|another program)/.test(owner)) return undefined
  return fault(
    `Port ${port}, on which the edge serves apps, is taken by ${owner}.`,
    `End that program, or set ${name} to another port.`,
  )
}

export const ENGINE: readonly Check[] = [
  {
    name: 'engine',
    look: (patient) =>
      asking(patient, async (call) => {
        const { Version, ApiVersion } = await call<Version>('/version')
        const image = await call<EdgeImage | undefined>(
          `/images/${encodeURIComponent(EDGE_IMAGE)}/json`,
          [404],
        )
        const wrong = faultOfEdge(versionIn(image))
        if (wrong) return fault(wrong, renewalOf(patient))
        if (image?.Id)
          return ok(
            `The container engine ${Version} (API ${ApiVersion}) answers and has the image of the edge.`,
          )
        return note(
          `The container engine ${Version} answers, but does not have the image of the edge, ${EDGE_IMAGE}.`,
          'The start pulls it; without a registry run: npm run images',
        )
      }),
  },
  {
    name: 'engine disk',
    look: (patient) =>
      asking(patient, async (call, { local }) => {
        const info = await call<Info>('/info')
        const folder = info.DockerRootDir ?? ''
        if (!local || !isHere(info) || !existsSync(folder))
          return note('The disk of the engine cannot be seen from here.')
        const { bavail, bsize } = statfsSync(folder)
        const free = bavail * bsize
        const says = `The engine has ${sizeOf(free)} left in ${folder} (${info.Driver}).`
        return free < SCARCE_BYTES ? note(says, 'Free space: docker system prune') : ok(says)
      }),
  },
  {
    name: 'build limits',
    look: (patient) =>
      asking(patient, async (call, { local }) => {
        const [info, { ApiVersion }] = await Promise.all([
          call<Info>('/info'),
          call<{ ApiVersion: string }>('/version'),
        ])
        return lookAtLimits(info, Number(ApiVersion), local)
      }),
  },
  {
    name: 'container users',
    look: (patient) =>
      asking(patient, async (call) => {
        const [{ SecurityOptions }, version] = await Promise.all([
          call<Info>('/info'),
          call<Version>('/version'),
        ])
        if (SecurityOptions?.some((option) => option.startsWith('name=userns')))
          return ok('Root of a container is nobody of this machine.')
        const runc = runcVersion(version)
        if (runc === undefined) return note('The engine does not say what it starts containers with.')
        return takesLinksForDevices(runc)
          ? note(
              `The engine starts containers with runc ${runc}, of which faults are known; Portreeve refuses the ways to them that it knows.`,
              'Update runc to 1.2.8, 1.3.3 or later, or give containers users of their own; README, "Users of containers".',
            )
          : ok('No fault of the program that starts containers is known here.')
      }),
  },
  {
    name: 'edge ports',
    async look(patient) {
      const { config } = patient
      const name = edgeName(directories(config.data_directory).ingress)
      const connection = createConnection(config.docker_host)
      const answer = await connection
        .call<{ State?: { Running?: boolean } } | undefined>({
          path: `/containers/${name}/json`,
          accept: [404],
          deadline_ms: ENGINE_MS,
        })
        .then(
          (found) => ({ found }),
          () => undefined,
        )
      connection.close()
      // It may serve on: engines that restart leave containers running.
      if (!answer && patient.is_running)
        return note('Whether the edge serves cannot be told while the engine does not answer.')
      const edge_runs = answer?.found?.State?.Running === true
      const { http_port, https_port } = config
      for (const port of [
        [http_port, 'PORTREEVE_HTTP_PORT'],
        [https_port, 'PORTREEVE_HTTPS_PORT'],
      ] as const) {
        const wrong = await lookAtPort(patient, port, edge_runs)
        if (wrong) return wrong
      }
      if (patient.is_running && !edge_runs)
        return fault('The edge does not run, so no app can be reached.', `Look at it: docker logs ${name}`)
      return ok(
        edge_runs
          ? `The edge serves on ports ${http_port} and ${https_port}.`
          : `Ports ${http_port} and ${https_port} are free for the edge.`,
      )
    },
  },
]
