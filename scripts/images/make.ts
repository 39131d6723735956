import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Docker } from './docker.ts'
import { bootstrap, ensureBootstrapTool, findSources, proxySettings } from './debian.ts'
import { customRegistry, registrySigns, unpackNpmParts } from './npm.ts'
import { debian } from './recipes.ts'
import type { Recipe, Suite } from './recipe.ts'

/** What making an image needs from around it. */
export interface Workshop {
  docker: Docker
  /** Folder `images/` of the checkout. */
  recipes_dir: string
  /** Folder for unpacked packages and tar files; whatever is made below it is removed again. */
  scratch_dir: string
  mirror?: string
  say: (line: string) => void
  signal?: AbortSignal
}

/** Marks an image that is not what its name says; the other labels say what it really is. */
export const STAND_IN_LABEL = 'portreeve.stand-in'
const BUNDLE = '/etc/ssl/certs/ca-certificates.crt'
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The name under which a finished stand-in is kept. */
export const keptName = (recipe: Recipe): string => `portreeve/stand-in:${recipe.name}`

/** Makes stand-ins, each at most once per run, however many images ask for it at the same time. */
export function createMaker(workshop: Workshop, rebuild: boolean): (recipe: Recipe) => Promise<string> {
  const started = new Map<string, Promise<string>>()
  let tool: Promise<void> | undefined
  let registry: Promise<Record<string, string>> | undefined
  const make = async (recipe: Recipe): Promise<string> => {
    const image = keptName(recipe)
    if (!rebuild && (await workshop.docker.find(image))) return image
    if (recipe.base === undefined) {
      tool ??= ensureBootstrapTool(workshop.say)
      await tool
      await makeDebian(workshop, recipe.name as Suite, image)
    } else {
      const base = await once(debian(recipe.base))
      const npm = recipe.npm ? await (registry ??= registryArguments()) : {}
      await makeFromDockerfile(workshop, recipe, image, { BASE: base, ...npm, ...recipe.build_args })
    }
    await describe(workshop.docker, recipe, image)
    return image
  }
  const once = (recipe: Recipe): Promise<string> => {
    const running = started.get(recipe.name) ?? make(recipe)
    started.set(recipe.name, running)
    return running
  }
  return once
}

async function makeDebian(workshop: Workshop, suite: Suite, image: string): Promise<void> {
  await inScratch(workshop, async (folder) => {
    const tar = join(folder, `${suite}.tar`)
    const env = { PORTREEVE_APT_PROXY: await proxySettings() }
    await bootstrap(
      suite,
      await findSources(suite, workshop.mirror),
      join(workshop.recipes_dir, 'debian', 'customize.sh'),
      tar,
      env,
      workshop.signal,
    )
    // As variables of the image and not as build arguments: a Dockerfile that does not declare an argument
    // would ignore it.
    const certificates = [
      'SSL_CERT_FILE',
      'NODE_EXTRA_CA_CERTS',
      'PIP_CERT',
      'REQUESTS_CA_BUNDLE',
      'CARGO_HTTP_CAINFO',
      'DENO_CERT',
    ].map((name) => `${name}=${BUNDLE}`)
    await workshop.docker.import(tar, image, [
      `ENV PATH=${PATH}`,
      `ENV ${certificates.join(' ')}`,
      'CMD ["bash"]',
    ])
  })
}

async function makeFromDockerfile(
  workshop: Workshop,
  recipe: Recipe,
  image: string,
  build_args: Record<string, string>,
): Promise<void> {
  await inScratch(workshop, async (folder) => {
    await cp(join(workshop.recipes_dir, recipe.context), folder, { recursive: true })
    if (recipe.npm) await unpackNpmParts(recipe.npm, folder, workshop.signal)
    await workshop.docker.build(folder, image, build_args)
  })
}

/** What the node images must know about the registry that this machine uses. */
async function registryArguments(): Promise<Record<string, string>> {
  const [registry, signs] = await Promise.all([customRegistry(), registrySigns()])
  return {
    ...(registry ? { REGISTRY: registry } : {}),
    ...(signs ? {} : { COREPACK_INTEGRITY_KEYS: '0' }),
  }
}

/** Runs the image once to learn what it really is, and writes that on it. */
async function describe(docker: Docker, recipe: Recipe, image: string): Promise<void> {
  const said = await docker.output(image, recipe.version.command)
  const version = recipe.version.pattern.exec(said)?.[1]
  if (!version)
    throw new Error(
      `${image} was built, but \`${recipe.version.command.join(' ')}\` does not tell its version: ${said.trim()}`,
    )
  await docker.label(image, {
    [STAND_IN_LABEL]: 'true',
    [`${STAND_IN_LABEL}.recipe`]: recipe.name,
    [`${STAND_IN_LABEL}.version`]: version,
  })
}

async function inScratch(workshop: Workshop, work: (folder: string) => Promise<void>): Promise<void> {
  await mkdir(workshop.scratch_dir, { recursive: true })
  const folder = await mkdtemp(join(workshop.scratch_dir, 'make-'))
  try {
    await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
