/** Reads `Bearer realm="…",service="…"` into its parts. */
export function parseChallenge(header: string): {
  scheme: string
  parameters: Record<string, string>
} {
  const [, scheme = '', rest = ''] = /^(\w+)\s*(.*)$/s.exec(header.trim()) ?? []
  const parameters = Object.fromEntries(
    [...rest.matchAll(/\b(\w+)="([^"]*)"/g)].map(([, key, value]) => [key!.toLowerCase(), value!]),
  )
  return { scheme: scheme.toLowerCase(), parameters }
}
