import type { Issues } from './issues.ts'

/** Characters of files and variables that all containers together are given: one file may be named a thousand times. */
const MAX_CHARACTERS = 8 * 1024 * 1024
/** Mounts of all services: for each the files of the repository are looked through. */
const MAX_MOUNTS = 1000

/** What is left of what a compose file may give its containers. */
export class Room {
  readonly #issues: Issues
  #characters = MAX_CHARACTERS
  #mounts = MAX_MOUNTS

  constructor(issues: Issues) {
    this.#issues = issues
  }

  /** Whether anything more may be read. */
  get is_left(): boolean {
    return this.#characters >= 0 && this.#mounts >= 0
  }

  /** Takes room for a text; says whether there was any. */
  takeText(text: string, path: string): boolean {
    this.#characters -= text.length
    if (this.#characters >= 0) return true
    this.#issues.add(path, 'is too much: with it the services get more than 8 MiB of files and variables.')
    return false
  }

  takeMount(path: string): boolean {
    if (--this.#mounts >= 0) return true
    this.#issues.add(path, `is too much: the services have more than ${MAX_MOUNTS} mounts.`)
    return false
  }
}
