const BROWSERS: readonly [name: string, mark: RegExp][] = [
  ['Edge', /\bEdg(e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Firefox', /\b(Firefox|FxiOS)\//],
  ['Chrome', /\b(HeadlessChrome|Chrome|CriOS|Chromium)\//],
  ['Safari', /\bSafari\//],
  ['curl', /^curl\//],
  ['wget', /^Wget\//i],
  ['Portreeve CLI', /^portreeve\b/i],
  ['Node.js', /^(node|undici)\b/i],
  ['Python', /^python/i],
  ['Go', /^Go-http-client/],
]
const SYSTEMS: readonly [name: string, mark: RegExp][] = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMac OS X\b|\bMacintosh\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\bLinux\b/],
]

/** Browser and system in words, for a list of sessions that people recognise. */
export function deviceOf(user_agent: string): string {
  const browser = BROWSERS.find(([, mark]) => mark.test(user_agent))?.[0]
  const system = SYSTEMS.find(([, mark]) => mark.test(user_agent))?.[0]
  if (browser && system) return `${browser} on ${system}`
  return browser ?? system ?? 'Unknown device'
}
