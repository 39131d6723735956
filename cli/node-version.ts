import { CommandError } from './terminal.ts'

/** The first Node whose WebSocket and files are what the commands use. */
const OLDEST = { major: 22, minor: 14 }

/** Throws on a Node that is too old: what is missing there would be found out in the middle of a deployment. */
export function requireNode(version = process.versions.node): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) return
  throw new CommandError(
    `This needs Node ${OLDEST.major}.${OLDEST.minor} or later, and runs with ${version}. Install a newer one, or use the one-file program, which has its own.`,
  )
}
