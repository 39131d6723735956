import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freeForUsers } from '#server/kernel/disk-reserve'
import { directories } from '#server/kernel/directories'
import { run } from '#server/kernel/process'
import { createSecrets, loadMasterKey } from '#server/kernel/secrets'
import { unknownSettings } from '#server/kernel/unknown-settings'
import { checkNode } from '#server/start/open-kernel'
import { sizeOf } from '../sizes.ts'
import { type Check, fault, note, ok, reasonOf } from './finding.ts'

const OTHERS = 0o077
/** Below this a build or a backup soon fails. */
const SCARCE_BYTES = 2 * 1024 ** 3
const SCARCE_FILES = 10_000
const TIMEOUT_MS = 5_000
/** A row may be a little younger than the clock says, after a leap or a correction. */
const DRIFT_MS = 60_000
/** Nobody runs this before it was written. */
const WRITTEN = Date.UTC(2026, 0, 1)

const works = async (...argv: string[]): Promise<boolean> =>
  run(argv, { cwd: '/', timeout_ms: TIMEOUT_MS }).then(
    ({ exit_code }) => exit_code === 0,
    () => false,
  )

/** The folder itself, or the nearest above it that is there. */
function existing(path: string): string {
  return existsSync(path) ? path : existing(dirname(path))
}

export const MACHINE: readonly Check[] = [
  {
    name: 'settings',
    look({ env }) {
      checkNode()
      const odd = unknownSettings(env)
      if (odd.length === 0) return ok(`The settings fit, and Node ${process.versions.node} is new enough.`)
      return note(
        `There is no setting ${odd.map(({ name }) => name).join(', ')}; it is ignored.`,
        odd[0]!.nearest ? `Is ${odd[0]!.nearest} meant?` : 'Take it out of the environment.',
      )
    },
  },
  {
    name: 'user',
    look: () =>
      process.getuid?.() === 0
        ? ok('This runs as root, so the firewall and the limits of builds can be set.')
        : note(
            'This does not run as root: a server of this user sets no firewall rules and no limits of builds.',
            'Run Portreeve, and this command, as root.',
          ),
  },
  {
    name: 'data folder',
    look({ config: { data_directory: path } }) {
      const found = statSync(path, { throwIfNoEntry: false })
      const place = existing(path)
      try {
        accessSync(place, constants.W_OK | constants.X_OK)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EROFS')
          return fault(
            `${place} is on a file system that is read-only.`,
            'Kernels make one so after a fault of its disk: dmesg tells. Mend that, then: mount -o remount,rw <its mount point>',
          )
        return fault(
          `${place} cannot be written by this user.`,
          'Set PORTREEVE_DATA_DIR to a folder that this user may write, or run this as the user of Portreeve.',
        )
      }
      if (!found) return note(`${path} is not there yet; the first start makes it.`)
      const open = [path, join(path, 'portreeve.db')].find(
        (one) => ((statSync(one, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0,
      )
      return open === undefined
        ? ok(`${path} can be written and is closed to other users.`)
        : note(`${open} can be read by other users of this machine.`, `Close it: chmod -R go= ${open}`)
    },
  },
  {
    name: 'disk',
    look({ config }) {
      const place = existing(config.data_directory)
      const free = freeForUsers(place)
      const { files, ffree } = statfsSync(place)
      if (files > 0 && ffree < SCARCE_FILES)
        return fault(
          `The disk of ${place} has room for ${ffree} more files only.`,
          'Remove files, or use a disk with more inodes.',
        )
      if (free <= 0)
        return fault(
          `The disk of ${place} is full but for what is kept for Portreeve itself: uploads and deployments are refused.`,
          'Free space, e.g. with docker system prune, or use a larger disk.',
        )
      return free < SCARCE_BYTES
        ? note(
            `The disk of ${place} has ${sizeOf(free)} left for users.`,
            'Free space before a build or a backup fails.',
          )
        : ok(`The disk of ${place} has ${sizeOf(free)} left for users.`)
    },
  },
  {
    name: 'database',
    look({ db, db_fault, config }) {
      if (db_fault !== undefined) return fault(db_fault, 'Mend it as it says; a start would end with this.')
      if (!db) return note('There is no database yet; the first start makes it.')
      const [row] = db.raw.pragma('quick_check(1)') as { quick_check: string }[]
      if (row?.quick_check !== 'ok')
        return fault(
          `The database is damaged: ${row?.quick_check}.`,
          `Stop Portreeve and put the newest good copy of ${directories(config.data_directory).backups} in its place.`,
        )
      return ok('The database can be read, is of this version and is not damaged.')
    },
  },
  {
    name: 'secret key',
    look({ db, db_fault, config }) {
      if (db_fault !== undefined)
        return note('Whether the key fits cannot be told while the database cannot be read.')
      const path = join(directories(config.data_directory).keys, 'secret.key')
      const check = db?.sql(`SELECT value FROM meta WHERE key = 'secret_check'`).pluck().get()
      if (typeof check !== 'string') return note('No secret is stored yet; the first start makes a key.')
      try {
        createSecrets(loadMasterKey(path, config.secret_key, true)).open(check, 'meta/secret_check')
      } catch (error) {
        // While a rotation is under way, both keys are needed.
        if (existsSync(`${path}.next`)) return note('The key is being rotated; the server finishes it.')
        return fault(
          `The stored secrets cannot be opened: ${reasonOf(error)}`,
          `Put the right key back at ${path}: without it they are lost.`,
        )
      }
      return ok('The key opens what is stored. Keep a copy of it apart from the backups.')
    },
  },
  {
    name: 'clock',
    async look({ db }) {
      const newest = db?.sql('SELECT max(created_at) FROM events').pluck().get() as string | null | undefined
      if (Date.now() < WRITTEN)
        return fault('The clock is years behind.', 'Set it, and let it follow a time server.')
      if (newest && Date.parse(newest) - Date.now() > DRIFT_MS)
        return fault(
          `The clock says ${new Date().toISOString()}, which is before the last event (${newest}).`,
          'Set it, and let it follow a time server: tokens, certificates and cron jobs go by it.',
        )
      const synchronised = await run(['timedatectl', 'show', '--property', 'NTPSynchronized', '--value'], {
        cwd: '/',
        timeout_ms: TIMEOUT_MS,
      }).then(
        ({ stdout, exit_code }) => (exit_code === 0 ? stdout.trim() : undefined),
        () => undefined,
      )
      return synchronised === 'no'
        ? note('The clock follows no time server.', 'Turn it on: timedatectl set-ntp true')
        : ok(`The clock says ${new Date().toISOString()}, and nothing speaks against it.`)
    },
  },
  {
    name: 'git',
    look: async () =>
      (await works('git', '--version'))
        ? ok('Git is installed.')
        : fault(
            'Git is not installed: nothing can be deployed from a repository.',
            'Install it: apt-get install git',
          ),
  },
]
