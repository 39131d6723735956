const MASK = '[redacted]'
/** Shorter values would blot out ordinary words. */
const SHORTEST = 8

/** Takes known secret values out of a text, also in their base64 and URL-encoded forms. Source: security.md 2.7. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = new Set<string>()
  for (const secret of secrets) {
    for (const line of [secret, ...secret.split('\n')]) {
      if (line.length < SHORTEST) continue
      forms.add(line).add(encodeURIComponent(line)).add(JSON.stringify(line).slice(1, -1))
      for (const encoding of ['base64', 'base64url'] as const) forms.add(Buffer.from(line).toString(encoding).replace(/=+$/, ''))
    }
  }
  const sorted = [...forms].sort((a, b) => b.length - a.length)
  return (text) => sorted.reduce((result, form) => (result.includes(form) ? result.split(form).join(MASK) : result), text)
}
