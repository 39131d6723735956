import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseCompose } from '#server/compose/parse'
import { readText } from './portreeve.ts'
import { ROOT } from './routes.ts'

const IMAGES = join(ROOT, 'test/fixtures/template-images')
/** Images that the usual stand-ins already are, by the beginning of their names. */
const USUAL: Record<string, string> = { 'postgres:': 'portreeve/stand-in:postgres-17' }
const DAEMONS = ['docker-registry', 'nats-server', 'prometheus', 'victoria-metrics']
/** Packages of two versions of Debian, each installed once for all images that are made of them. */
const BASES = {
  older: { from: 'portreeve/stand-in:bookworm', packages: DAEMONS },
  newer: {
    from: 'portreeve/stand-in:php-8.4',
    packages: [
      ...['dokuwiki', 'miniflux', 'php-mysql', 'syncthing', 'wordpress', 'wordpress-theme-twentytwentyfive'],
      ...DAEMONS,
    ],
  },
}
type Base = keyof typeof BASES
const OF_PACKAGES = { base: 'older', next: 'newer' } as const
/** What each image is made of, and what makes the next version of it where there is one. */
const MADE: Record<string, { base?: Base; next?: Base | `VERSION=${string}` }> = {
  'docker-registry': OF_PACKAGES,
  dokuwiki: { base: 'newer' },
  mariadb: {},
  miniflux: { base: 'newer' },
  nats: OF_PACKAGES,
  'node-red': { next: 'VERSION=4.1' },
  prometheus: OF_PACKAGES,
  syncthing: { base: 'newer' },
  verdaccio: { next: 'VERSION=6.10' },
  victoriametrics: OF_PACKAGES,
  wordpress: { base: 'newer' },
}

const run = promisify(execFile)
/** The Docker CLI beside which other templates are walked. */
const docker = async (...args: string[]): Promise<string> =>
  (await run('/usr/bin/docker', args, { maxBuffer: 64 * 1024 * 1024 })).stdout.trim()
const idOf = (image: string) => docker('images', '-q', image)

const bases = new Map<Base, Promise<string>>()
/** The image with the packages; made once, however many ask for it. */
export function baseImage(name: Base): Promise<string> {
  const made = bases.get(name) ?? makeBase(name)
  bases.set(name, made)
  return made
}
async function makeBase(name: Base): Promise<string> {
  const tag = `portreeve/stand-in:templates-${name}`
  const { from, packages } = BASES[name]
  const build_args = ['--build-arg', `BASE=${from}`, '--build-arg', `PACKAGES=${packages.join(' ')}`]
  if (!(await idOf(tag)))
    await docker('build', '--quiet', '--tag', tag, ...build_args, join(IMAGES, 'packages'))
  return tag
}

const buildArgument = async (made: string | undefined): Promise<string[]> => {
  if (made === undefined) return []
  return ['--build-arg', made in BASES ? `BASE=${await baseImage(made as Base)}` : made]
}
const build = async (folder: string, image: string, made: string | undefined) =>
  docker('build', '--quiet', '--tag', image, ...(await buildArgument(made)), join(IMAGES, folder))

/**
 * Makes the images that a template names, of the packages that Debian and npm have of the same software, where
 * the engine has them not: no registry may be reachable. Their versions may differ from the tag.
 */
export async function ensureTemplateImages(slug: string): Promise<void> {
  const { services } = parseCompose(readText(join(ROOT, 'templates', slug, 'compose.yaml')))
  for (const { image } of services) {
    if (image === null || (await idOf(image))) continue
    const usual = Object.entries(USUAL).find(([start]) => image.startsWith(start))?.[1]
    const folder = image.startsWith('mariadb:') ? 'mariadb' : slug
    if (usual) await docker('tag', usual, image)
    else await build(folder, image, MADE[folder]?.base)
  }
}

/**
 * The compose file with another version of every image, as an upgrade names it. Where a newer version can be made
 * of packages it is a newer one; otherwise it is the same in all but name.
 */
export async function nextVersion(slug: string, compose: string): Promise<string> {
  const next = MADE[slug]?.next
  const images = [...compose.matchAll(/image: (\S+)/g)].map(([, image]) => image!)
  for (const image of images) {
    if (next === undefined) await docker('tag', image, `${image}-next`)
    else {
      await build(slug, `${image}-next`, next)
      if ((await idOf(`${image}-next`)) === (await idOf(image)))
        throw new Error(`The next version of ${slug} is the same as the one before.`)
    }
  }
  return compose.replaceAll(/(image: \S+)/g, '$1-next')
}
