const MASK = '[redacted]'
/** Shorter values would blot out ordinary words. */
const SHORTEST = 8
/** So much of a secret's beginning may be left where a line was cut. */
const SHORTEST_HEAD = 4

/** Ends a line of which the rest was not kept. */
export const CUT_MARK = ' … [line truncated]'

/**
 * A secret in base64, also as the end or the middle of a longer text such as `user:secret`, whatever comes
 * before it: base64 writes three bytes at a time, so a value has one form for each place in such a group.
 * Characters that it shares with its neighbours are left out, but for those at the end, which are its own
 * when nothing follows.
 */
function encoded(secret: string, encoding: 'base64' | 'base64url'): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
    const own = bytes
      .toString(encoding)
      .replace(/=+$/, '')
      .slice(Math.ceil((before * 4) / 3))
    const inner = Math.floor((bytes.length * 8) / 6) - Math.ceil((before * 4) / 3)
    return [own, own.slice(0, inner)]
  })
}

/**
 * Takes known secret values out of a text, also in their base64 (with any user name before them) and
 * URL-encoded forms, and what is left of one where the text ends with `CUT_MARK`. Source: security.md 2.7.
 */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = new Set<string>()
  for (const secret of new Set(secrets)) {
    for (const line of [secret, ...secret.split('\n')]) {
      if (line.length < SHORTEST) continue
      forms.add(line).add(encodeURIComponent(line)).add(JSON.stringify(line).slice(1, -1))
      for (const encoding of ['base64', 'base64url'] as const)
        for (const form of encoded(line, encoding)) forms.add(form)
    }
  }
  const sorted = [...forms].sort((a, b) => b.length - a.length)
  const whole = createMasker(sorted)
  return (text) =>
    text.endsWith(CUT_MARK)
      ? `${withoutHead(whole(text.slice(0, -CUT_MARK.length)), sorted)}${CUT_MARK}`
      : whole(text)
}

/** So many characters at the start of a form decide whether the rest is compared. */
const INDEXED = 4

/**
 * Masks every place where one of many forms stands; forms that overlap are masked together, so that no part of
 * either is left. A line costs the same with a thousand variables as with one.
 */
function createMasker(sorted: readonly string[]): (text: string) => string {
  const by_start = Map.groupBy(sorted, (form) => form.slice(0, INDEXED))
  return (text) => {
    if (by_start.size === 0) return text
    let result = ''
    let written = 0
    let masked_to = 0
    for (let i = 0; i + SHORTEST <= text.length; i += 1) {
      const found = by_start.get(text.slice(i, i + INDEXED))?.find((form) => text.startsWith(form, i))
      if (found === undefined) continue
      if (i >= masked_to) {
        if (masked_to > 0) written = masked_to
        result += text.slice(written, i) + MASK
      }
      masked_to = Math.max(masked_to, i + found.length)
    }
    return masked_to === 0 ? text : result + text.slice(masked_to)
  }
}

/** Takes the beginning of a secret off the end of a text that was cut there. */
function withoutHead(text: string, forms: readonly string[]): string {
  let longest = 0
  for (const form of forms) {
    for (let length = form.length - 1; length >= SHORTEST_HEAD && length > longest; length -= 1)
      if (text.endsWith(form.slice(0, length))) longest = length
  }
  return longest === 0 ? text : text.slice(0, -longest) + MASK
}
