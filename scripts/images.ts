/**
 * `npm run images`: makes sure that the engine has the images Portreeve needs, with or without a registry.
 */
import { join } from 'node:path'
import { createDocker } from './images/docker.ts'
import { wantedImages } from './images/families.ts'
import { createMaker } from './images/make.ts'
import { parseOptions, select, USAGE, UsageError, type Options } from './images/options.ts'
import { outcomeLine, provide, type Outcome } from './images/provide.ts'
import type { Wanted } from './images/recipe.ts'

const root = join(import.meta.dirname, '..')
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

async function main(options: Options): Promise<number> {
  if (options.help) {
    say(USAGE)
    return 0
  }
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => {
      say('Stopping.')
      stop.abort()
    })
  const docker = createDocker(stop.signal)
  await docker.check()
  const chosen = select(wantedImages(), options)
  if (options.list) {
    await list(options.all || options.only.length > 0 ? chosen : wantedImages(), docker.find)
    return 0
  }
  if (options.missing) {
    for (const one of chosen) if (!(await docker.find(one.image))) say(one.image)
    return 0
  }
  const make = createMaker(
    {
      docker,
      recipes_dir: join(root, 'images'),
      scratch_dir: join(root, '.images'),
      mirror: options.mirror,
      say,
      signal: stop.signal,
    },
    options.rebuild,
  )
  const started = Date.now()
  const outcomes = await provide(chosen, {
    docker,
    make: (desired) => make(desired.recipe!),
    pull: options.pull,
    rebuild: options.rebuild,
    jobs: options.jobs,
    say,
  })
  return conclude(outcomes, (Date.now() - started) / 1000)
}

function conclude(outcomes: readonly Outcome[], seconds: number): number {
  for (const outcome of outcomes) if (outcome.result === 'kept') say(outcomeLine(outcome))
  const count = (result: Outcome['result']): number =>
    outcomes.filter((outcome) => outcome.result === result).length
  if (count('kept') === outcomes.length) say(`All ${outcomes.length} images exist; nothing was changed.`)
  else
    say(
      `${count('made')} made, ${count('pulled')} pulled, ${count('kept')} kept, ${count('failed')} failed in ${seconds.toFixed(0)} s.`,
    )
  if (outcomes.some((outcome) => outcome.stand_in_version !== undefined))
    say('A stand-in is not the image its name says; docs/closed-network.md tells the difference.')
  return count('failed') === 0 ? 0 : 1
}

type Found = { size_bytes: number; labels: Record<string, string> }

/** In words: whether an image is there, or how it can be had. */
function stateOf({ recipe }: Wanted, found: Found | undefined): string {
  if (!found) return recipe ? `missing, can be made (${recipe.name})` : 'missing, needs a registry'
  const real = found.labels['portreeve.stand-in.version']
  return real ? `there (stand-in, really ${real})` : 'there'
}

async function list(
  expected: readonly Wanted[],
  find: (image: string) => Promise<Found | undefined>,
): Promise<void> {
  for (const one of expected) {
    const state = stateOf(one, await find(one.image))
    say(`${one.family.padEnd(14)}  ${one.image.padEnd(44)}  ${state}${one.usual ? ', usual' : ''}`)
  }
}

try {
  process.exitCode = await main(parseOptions(process.argv.slice(2)))
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  if (error instanceof UsageError) process.stderr.write('Try --help.\n')
  process.exitCode = error instanceof UsageError ? 2 : 1
}
