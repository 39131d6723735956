import { CACHE_MOUNT, FLAGS_OF_RUN } from './cache-mounts.ts'

/**
 * What is mounted over `/dev` once more. The builder mounts in the order of the texts of the places, in which `/./` comes
 * before `/dev`, and what comes last is what the devices are made in.
 */
const OWN_DEV = '--mount=type=tmpfs,target=/dev'
/** Nothing removes these two of the server by their names: nobody puts a link in the place of a root. */
export const OWN_MOUNTS: readonly string[] = [OWN_DEV, '--mount=type=tmpfs,target=/dev/shm']
const FIRST = '/./'

const MOUNT = /(\s)--mount=(\S+)/gi
const PLACE = /^(?:target|dst|destination)=(.*)$/i
/** Written out and absolute: whoever joins it with another folder does so after it was looked at. */
const PLAIN_PLACE = /^\/[\w@+.-]+(?:\/[\w@+.-]+)*\/?$/
/** Mounts in which nothing is that somebody has put there before, or to which nobody can write. */
const FRESH = ['tmpfs', 'secret', 'ssh']

/** Whether a flag of RUN mounts what steps write to, and others find there later. */
export function isWritableMount(flag: string): boolean {
  const fields = /^--mount=(.*)$/is.exec(flag)?.[1]?.toLowerCase().split(',') ?? []
  const types = fields.flatMap((field) => /^\s*type\s*=\s*(.*?)\s*$/s.exec(field)?.[1] ?? [])
  const may_write = fields.some((field) => /^\s*(?:rw|readwrite|ro|readonly)\b/.test(field))
  return types.some((type) => type !== 'bind' && !FRESH.includes(type)) || may_write
}

/** Whether a mount that steps write to is made before the own `/dev`, among these flags of one RUN. */
export function isBelowOwnDev(flag: string, flags: readonly string[]): boolean {
  const places = flag.split(',').flatMap((field) => PLACE.exec(field.trim())?.[1] ?? [])
  return places.length > 0 && places.every((place) => place.startsWith(FIRST)) && flags.includes(OWN_DEV)
}

/**
 * A Dockerfile whose steps have devices of their own, whatever is mounted. A step can put a link to `/dev` in the place
 * of a folder in which a later one mounts a cache: that is what runc before 1.2.8 and 1.3.3 then takes for the devices
 * (CVE-2025-31133), and with a link called `null` in it, what the step prints is written to any file below `/proc/sys`
 * of this machine. Caches whose place is not written out are left out.
 */
export const withOwnDev = (dockerfile: string): string =>
  dockerfile.replace(FLAGS_OF_RUN, (flags) => {
    let is_needed = false
    const mounts = flags.replace(MOUNT, (whole: string, space: string, fields: string) => {
      if (!isWritableMount(`--mount=${fields}`)) return whole
      const parts = fields.split(',')
      const places = parts.flatMap((part) => PLACE.exec(part)?.[1] ?? [])
      if (places.length === 0 || !places.every((place) => PLAIN_PLACE.test(place))) return whole
      is_needed = true
      const placed = parts.map((part) => (PLACE.test(part) ? part.replace('=/', `=${FIRST}`) : part))
      return `${space}--mount=${placed.join(',')}`
    })
    if (!is_needed) return mounts.replace(CACHE_MOUNT, '$1')
    return mounts
      .replace(CACHE_MOUNT, (whole: string, gap: string) => (whole.includes(`=${FIRST}`) ? whole : gap))
      .replace(/^\s*(?:ONBUILD\s+)*RUN/i, (run) => [run, ...OWN_MOUNTS].join(' '))
  })
