/** What builds of apps are kept under on the engine. */
const OWN_IMAGES = 'portreeve/'
const HUB = 'docker.io'
const COMPONENT = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const IMAGE = new RegExp(
  `^(?:(?<host>[A-Za-z0-9.-]+(?::\\d{1,5})?|\\[[0-9a-fA-F:.]+\\](?::\\d{1,5})?)/)?(?<path>${COMPONENT}(?:/${COMPONENT})*)(?<tag>:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?<digest>@sha256:[0-9a-f]{64})?$`,
)

/** Characters of a name without its tag and digest; engines refuse longer ones, but only once they pull them. */
const MAX_NAME = 255

/** Parts of an image reference as registries and engines understand it; undefined when it is none. */
export function parseImage(text: string): { host?: string; path: string } | undefined {
  const parts = IMAGE.exec(text)?.groups as { host?: string; path: string } | undefined
  return parts && `${parts.host ?? ''}/${parts.path}`.length <= MAX_NAME ? parts : undefined
}

/** Whether a reference names an image that a build of some app made: it would run the image of another project. */
export const isOwnImage = (image: string): boolean =>
  image.replace(/^([a-z0-9-]+\.)?docker\.io\//i, '').startsWith(OWN_IMAGES)

/** Host of an image reference, as engines read it: the first part counts as a host when it looks like one. */
export function registryHost(image: string): string {
  const [first = '', ...rest] = image.split('/')
  if (rest.length === 0 || !(first.includes('.') || first.includes(':') || first === 'localhost')) return HUB
  return first.toLowerCase() === 'index.docker.io' ? HUB : first.toLowerCase()
}

/** Name and port of a registry's host. */
export function hostAndPort(host: string): [name: string, port: number] {
  const [, name = host, port = '443'] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
  return [name, Number(port)]
}
