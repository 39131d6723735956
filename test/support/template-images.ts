import { join } from 'node:path'
import { parseCompose } from '#server/compose/parse'
import { docker, readText } from './portreeve.ts'
import { ROOT } from './routes.ts'

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
    else docker('build', '--quiet', '--tag', image, join(ROOT, 'test/fixtures/template-images', folder))
  }
}

/** Another version of every image of a compose file, as an upgrade names it; it is the same in all but name. */
export function nextVersion(compose: string): string {
  return compose.replaceAll(/(image: )(\S+)/g, (_, key: string, image: string) => {
    docker('tag', image, `${image}-next`)
    return `${key}${image}-next`
  })
}
