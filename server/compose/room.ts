import type { Issues } from './issues.ts'

const MIB = 1024 ** 2
/**
 * What all services of a file may have together. A list that an alias brings to sixty services
 * multiplies whatever stands in it, and files of the repository are larger than their names.
 */
const ROOM = {
  mounts: 1000,
  ports: 10_000,
  file_characters: 8 * MIB,
  variable_characters: 8 * MIB,
  /** Of all files that are read, mounted or not: nobody else is served meanwhile. */
  read_characters: 16 * MIB,
}
const SAYS: Record<keyof typeof ROOM, string> = {
  mounts: `The services name more than ${ROOM.mounts} mounts and files.`,
  ports: `The services name more than ${ROOM.ports} ports.`,
  file_characters: 'The services mount files of more than 8 MiB; build an image with them.',
  variable_characters: 'The services have variables of more than 8 MiB.',
  read_characters: 'The file names files of more than 16 MiB; build images with them.',
}

export class Room {
  readonly #left = { ...ROOM }
  readonly #issues: Issues

  constructor(issues: Issues) {
    this.#issues = issues
  }

  /** Takes some of it; false, with an issue, once there is no more. */
  take(what: keyof typeof ROOM, amount: number): boolean {
    this.#left[what] -= amount
    if (this.#left[what] >= 0) return true
    this.#issues.add('services', SAYS[what])
    return false
  }

  isSpent(what: keyof typeof ROOM): boolean {
    return this.#left[what] < 0
  }
}
