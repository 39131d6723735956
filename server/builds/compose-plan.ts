import { mainService } from '#server/compose/main-service'
import type { ComposePlan, ComposeService } from '#server/compose/model'
import { composeFileOf } from '#server/compose/compose-file'
import { ComposeError, type ComposeOptions, parseCompose } from '#server/compose/parse'
import { invalidCompose } from '#server/compose/refusal'
import { invalid } from '#server/kernel/errors'
import type { BuildPlan, Explanation } from './plan.ts'
import { openTree } from './source-tree.ts'

/** The dry run of a compose file without a repository. Throws a 422 with every fault of it. */
export function planOfText(text: string, options: ComposeOptions = {}): BuildPlan {
  try {
    return composeBuildPlan(parseCompose(text, options))
  } catch (error) {
    throw error instanceof ComposeError ? invalidCompose('compose', error) : error
  }
}

/** The dry run of the compose file of a folder. */
export async function planOfFolder(
  folder: string,
  { compose_path = null }: { compose_path?: string | null },
): Promise<BuildPlan> {
  const files = await openTree(folder)
  const { text, directory } = composeFileOf({ compose: null, compose_path }, files)
  if (text === undefined)
    throw invalid(
      'compose_path',
      'is no file of the repository. Name the compose file, seen from base_directory.',
    )
  return planOfText(text, { files, directory })
}

export const hasCompose = async (folder: string): Promise<boolean> =>
  composeFileOf({ compose: null, compose_path: null }, await openTree(folder)).text !== undefined

/** Another plan, with what the compose file beside it describes: for a person who decides between the two. */
export async function withStack(plan: BuildPlan, folder: string): Promise<BuildPlan> {
  if (!(await hasCompose(folder))) return plan
  try {
    const { compose } = await planOfFolder(folder, {})
    const how = {
      field: 'compose',
      value: 'found',
      source: 'compose file; create the app with source "compose" to run it',
    }
    return { ...plan, explanation: [...plan.explanation, how], ...(compose ? { compose } : {}) }
  } catch {
    return plan
  }
}

function describe({ name, image, build, public_port, replicas, one_off }: ComposeService): Explanation {
  const traits = [build ? `built from ${build.context}` : (image ?? '')]
  if (public_port !== null) traits.push(`public on port ${public_port}`)
  if (one_off) traits.push('runs to its end')
  else if (replicas !== 1) traits.push(`${replicas} instances`)
  return { field: `services.${name}`, value: traits.join(', '), source: 'compose file' }
}

/** A plan is kept with each deployment: what a stranger's file puts into it is bounded. */
const MOST_NOTES = 500
const LONGEST_PATH = 300
const few = (notes: ComposePlan['taken']): ComposePlan['taken'] =>
  notes.slice(0, MOST_NOTES).map(({ path, text }) => ({ path: path.slice(0, LONGEST_PATH), text }))

/** What is shown of a compose file where other apps have the plan of their build. */
export function composeBuildPlan({ taken, ignored, surprising, ...plan }: ComposePlan): BuildPlan {
  const notes = { taken: few(taken), ignored: few(ignored), surprising: few(surprising) }
  const main = mainService(plan.services)
  return {
    stack: 'compose',
    framework: null,
    version: null,
    package_manager: null,
    install_command: null,
    build_command: null,
    start_command: null,
    release_command: null,
    port: main?.public_port ?? 0,
    health_check: main?.health_path ? { type: 'http', path: main.health_path } : { type: 'tcp' },
    dockerfile: '',
    processes: {},
    web: main !== undefined,
    cron_jobs: [],
    explanation: [
      ...plan.services.map(describe),
      ...plan.left_out.map((name) => ({
        field: `services.${name}`,
        value: 'left out',
        source: 'none of its profiles is active',
      })),
      ...notes.surprising.map(({ path, text }) => ({ field: path, value: 'volume', source: text })),
      ...notes.ignored.map(({ path, text }) => ({ field: path, value: 'ignored', source: text })),
    ],
    compose: {
      services: plan.services.map((service) => ({
        name: service.name,
        image: service.image,
        build: service.build?.context ?? null,
        public_port: service.public_port,
        replicas: service.replicas,
        one_off: service.one_off,
        depends_on: service.depends_on.map((one) => one.service),
        volumes: service.mounts.flatMap((mount) => (mount.kind === 'volume' ? [mount.volume] : [])),
      })),
      main: main?.name ?? null,
      volumes: plan.volumes,
      left_out: plan.left_out,
      variables: plan.variables.map(({ name, required, default: fallback }) => ({
        name,
        required,
        default: fallback,
      })),
      taken: notes.taken,
      ignored: notes.ignored,
    },
  }
}
