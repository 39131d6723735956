import type { Verb } from './verb.ts'

/** What works on the installation of this machine: in its data directory, without the API. */
export const HOST_VERBS: readonly Verb[] = [
  {
    name: 'serve',
    summary: 'run the server in this terminal',
    load: () => import('./host/serve.ts'),
  },
  {
    name: 'rotate-key',
    summary: 'replace the key that stored secrets are sealed with',
    load: () => import('./host/rotate-key.ts'),
  },
  {
    name: 'setup',
    summary: 'set this machine or another one up: engine, service, administrator',
    load: () => import('./host/setup.ts'),
  },
  {
    name: 'upgrade',
    summary: 'replace the one-file program by another, with a way back',
    load: () => import('./host/upgrade.ts'),
  },
  {
    name: 'restore',
    summary: 'rebuild an installation from a backup of the platform',
    load: () => import('./host/restore.ts'),
  },
  {
    name: 'status',
    summary: 'whether the server runs and is ready, and what it runs',
    load: () => import('./host/status.ts'),
  },
  {
    name: 'doctor',
    summary: 'look at everything that a start needs, and say what to do',
    load: () => import('./host/doctor.ts'),
  },
  {
    name: 'logs',
    summary: 'what the server writes to its log',
    load: () => import('./host/logs.ts'),
  },
  {
    name: 'reset-password',
    summary: 'a new password for somebody who lost theirs',
    load: () => import('./host/reset-password.ts'),
  },
  {
    name: 'disable-2fa',
    summary: 'no second factor for somebody who lost theirs',
    load: () => import('./host/disable-2fa.ts'),
  },
  {
    name: 'uninstall',
    summary: 'take the service and the program away; apps and data stay',
    load: () => import('./host/uninstall.ts'),
  },
]
