import type { Docker, StoredImage } from './docker.ts'
import { keptName, STAND_IN_LABEL } from './make.ts'
import { pool } from './pool.ts'
import type { Wanted } from './recipe.ts'

/** What became of one image. */
export interface Outcome {
  image: string
  result: 'kept' | 'pulled' | 'made' | 'failed'
  /** The real version of a stand-in; undefined for an image that is what its name says. */
  stand_in_version?: string
  size_bytes?: number
  seconds: number
  problem?: string
}

export interface Provision {
  docker: Docker
  /** Makes the stand-in of an image's recipe and returns the name it is kept under. */
  make: (desired: Wanted) => Promise<string>
  pull: boolean
  rebuild: boolean
  jobs: number
  say: (line: string) => void
}

const isStandIn = (image: StoredImage): boolean => image.labels[STAND_IN_LABEL] === 'true'

/**
 * Makes every wanted image exist: keeps what is there, pulls while a registry answers, makes stand-ins of the
 * rest. One failure does not stop the others, so that a second call has less left to do.
 */
export async function provide(expected: readonly Wanted[], provision: Provision): Promise<Outcome[]> {
  const outcomes = new Map<string, Outcome>()
  const missing: Wanted[] = []
  for (const one of expected) {
    const found = await provision.docker.find(one.image)
    if (found && !(provision.rebuild && isStandIn(found)))
      outcomes.set(one.image, describe(one, found, 'kept', 0))
    else missing.push(one)
  }
  const left = provision.pull ? await pullAll(missing, provision, outcomes) : missing
  await pool(byRecipe(left), provision.jobs, async (group) => {
    await makeGroup(group, provision, outcomes)
  })
  return expected.map((one) => outcomes.get(one.image)).filter((outcome) => outcome !== undefined)
}

/**
 * Pulls in order and gives up for good at the first sign that no registry can be reached. Returns what is
 * still missing.
 */
async function pullAll(
  missing: readonly Wanted[],
  provision: Provision,
  outcomes: Map<string, Outcome>,
): Promise<Wanted[]> {
  const left: Wanted[] = []
  for (const [index, one] of missing.entries()) {
    const started = Date.now()
    const pulled = await provision.docker.pull(one.image)
    if (pulled === 'unreachable') {
      provision.say('No container registry can be reached: making stand-ins from packages.')
      return [...left, ...missing.slice(index)]
    }
    const found = pulled === 'pulled' ? await provision.docker.find(one.image) : undefined
    if (found) report(describe(one, found, 'pulled', since(started)), provision, outcomes)
    else left.push(one)
  }
  return left
}

/** Images of one recipe are one piece of work: it is made once and gets every name. */
function byRecipe(wanted: readonly Wanted[]): Wanted[][] {
  const groups = new Map<string, Wanted[]>()
  for (const one of wanted) {
    const key = one.recipe?.name ?? one.image
    groups.set(key, [...(groups.get(key) ?? []), one])
  }
  return [...groups.values()]
}

async function makeGroup(
  group: readonly Wanted[],
  provision: Provision,
  outcomes: Map<string, Outcome>,
): Promise<void> {
  for (const one of group) {
    const started = Date.now()
    try {
      if (!one.recipe) throw new Error('it needs a registry: neither Debian nor npm packages it')
      await provision.docker.tag(await provision.make(one), one.image)
      const found = await provision.docker.find(one.image)
      if (!found) throw new Error(`the engine lost ${keptName(one.recipe)} while it was tagged`)
      report(describe(one, found, 'made', since(started)), provision, outcomes)
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      report({ image: one.image, result: 'failed', seconds: since(started), problem }, provision, outcomes)
    }
  }
}

const since = (started: number): number => (Date.now() - started) / 1000

function describe(wanted: Wanted, found: StoredImage, result: Outcome['result'], seconds: number): Outcome {
  const version = isStandIn(found) ? found.labels[`${STAND_IN_LABEL}.version`] : undefined
  return {
    image: wanted.image,
    result,
    size_bytes: found.size_bytes,
    seconds,
    ...(version === undefined ? {} : { stand_in_version: version }),
  }
}

function report(outcome: Outcome, provision: Provision, outcomes: Map<string, Outcome>): void {
  outcomes.set(outcome.image, outcome)
  provision.say(outcomeLine(outcome))
}

/** One line for people: `made    python:3.12-slim   stand-in, really 3.13.5, 224 MB, 9.8 s`. */
export function outcomeLine(outcome: Outcome): string {
  const facts = [
    outcome.stand_in_version === undefined ? undefined : `stand-in, really ${outcome.stand_in_version}`,
    outcome.size_bytes === undefined ? undefined : `${Math.round(outcome.size_bytes / 1e6)} MB`,
    outcome.result === 'kept' ? undefined : `${outcome.seconds.toFixed(1)} s`,
    outcome.problem,
  ].filter((fact) => fact !== undefined)
  return `${outcome.result.padEnd(6)}  ${outcome.image.padEnd(30)}  ${facts.join(', ')}`
}
