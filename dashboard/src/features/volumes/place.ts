/**
 * Where a mount is, for people. Those of a compose file are named by volume, service and path:
 * `data:web:/var/lib` reads `web: /var/lib`.
 */
export function placeOf(path: string): string {
  const [, service, inside] = /^[^/:]+:([^/:]+):(.+)$/.exec(path) ?? []
  return service && inside ? `${service}: ${inside}` : path
}
