import { join } from 'node:path'
import { parseCompose } from '#server/compose/parse'
import { docker, readText } from './portreeve.ts'
import { ROOT } from './routes.ts'

const IMAGES = join(ROOT, 'test/fixtures/template-images')
/** Images that the usual stand-ins already are, by the beginning of their names. */
const USUAL: Record<string, string> = { 'postgres:': 'portreeve/stand-in:postgres-17' }

const exists = (image: string): boolean => docker('images', '-q', image) !== ''

/**
 * Makes the images that a template names, of the packages that Debian and npm have of the same software, where
 * the engine has them not: no registry may be reachable. Their versions may differ from the tag.
 */
export function ensureTemplateImages(slug: string): void {
  const { services } = parseCompose(readText(join(ROOT, 'templates', slug, 'compose.yaml')))
  for (const { image } of services) {
    if (image === null || exists(image)) continue
    const usual = Object.entries(USUAL).find(([start]) => image.startsWith(start))?.[1]
    const folder = image.startsWith('mariadb:') ? 'mariadb' : slug
    if (usual) docker('tag', usual, image)
    else docker('build', '--quiet', '--tag', image, join(IMAGES, folder))
  }
}

/** What makes the next version of an image: a newer Debian with a newer package, or a newer package of npm. */
const NEWER: Record<string, string> = {
  'docker-registry': 'BASE=portreeve/stand-in:trixie',
  nats: 'BASE=portreeve/stand-in:trixie',
  'node-red': 'VERSION=4.1',
  prometheus: 'BASE=portreeve/stand-in:trixie',
}

/**
 * The compose file with another version of every image, as an upgrade names it. Where a newer version can be made
 * of packages it is a newer one; otherwise it is the same in all but name.
 */
export function nextVersion(slug: string, compose: string): string {
  const newer = NEWER[slug]
  return compose.replaceAll(/(image: )(\S+)/g, (_, key: string, image: string) => {
    const next = `${image}-next`
    if (newer === undefined) docker('tag', image, next)
    else {
      docker('build', '--quiet', '--build-arg', newer, '--tag', next, join(IMAGES, slug))
      if (docker('images', '-q', next) === docker('images', '-q', image))
        throw new Error(`The next version of ${slug} is the same as the one before.`)
    }
    return `${key}${next}`
  })
}
