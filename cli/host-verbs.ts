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
    name: 'restore',
    summary: 'rebuild an installation from a backup of the platform',
    load: () => import('./host/restore.ts'),
  },
]
