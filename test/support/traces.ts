import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Base64 of a text at each of the three places where it can begin within other bytes, without the characters
 * that its neighbours share.
 */
function base64Forms(secret: string): string[] {
  return [0, 1, 2].map((before) => {
    const encoded = Buffer.from('\0'.repeat(before) + secret)
      .toString('base64')
      .replace(/=+$/, '')
    const whole = encoded.slice([0, 2, 3][before])
    return (before + Buffer.byteLength(secret)) % 3 === 0 ? whole : whole.slice(0, -1)
  })
}

/**
 * Every form in which a secret would betray itself: as it is, line by line, escaped for JSON and URLs, and in
 * base64.
 */
export function formsOf(secret: string): string[] {
  const lines = secret.split('\n').filter((line) => line.length >= 12 && !line.startsWith('-----'))
  return [
    ...new Set(
      lines.flatMap((line) => [
        line,
        JSON.stringify(line).slice(1, -1),
        encodeURIComponent(line),
        ...base64Forms(line),
        ...base64Forms(line).map((form) => form.replaceAll('+', '-').replaceAll('/', '_')),
      ]),
    ),
  ]
}

/** Which secrets are found where: `git token in the log of the server`. Empty when all are kept. */
export function betrayed(
  secrets: Readonly<Record<string, string>>,
  places: Readonly<Record<string, string>>,
): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) => {
    const forms = formsOf(secret)
    if (forms.length === 0) throw new Error(`The secret ${name} is too short to be searched for.`)
    return Object.entries(places)
      .filter(([, text]) => forms.some((form) => text.includes(form)))
      .map(([place]) => `${name} in ${place}`)
  })
}

/** Whether a process is in a container: a program there has its variables in its environment, as it must. */
function isContained(pid: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`) !== readlinkSync('/proc/self/ns/pid')
  } catch {
    return false
  }
}

/**
 * Command line of every process of this machine that may be read, and environment of those outside of
 * containers, but for this process and those it names.
 */
export function processList(except: readonly number[] = [process.pid]): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && !except.includes(Number(name)))
    .map((pid) =>
      (isContained(pid) ? ['cmdline'] : ['cmdline', 'environ'])
        .map((file) => {
          try {
            return readFileSync(`/proc/${pid}/${file}`, 'latin1').replaceAll('\0', ' ')
          } catch {
            return ''
          }
        })
        .join('\n'),
    )
    .join('\n')
}

/**
 * The raw bytes of every file below a folder, by path, but for those whose path begins with one of `except`.
 */
export function filesBelow(directory: string, except: readonly string[] = []): Record<string, string> {
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(
    paths
      .map((path) => [path.slice(directory.length + 1), path] as const)
      .filter(([name]) => !except.some((prefix) => name.startsWith(prefix)))
      .map(([name, path]) => [name, readFileSync(path, 'latin1')]),
  )
}
