import { join } from 'node:path'

/** Folders of runtime state below the data directory. */
export const directories = (data: string) => ({
  work: join(data, 'work'),
  uploads: join(data, 'uploads'),
  logs: join(data, 'logs', 'deployments'),
  access_logs: join(data, 'logs', 'access'),
  keys: join(data, 'keys'),
  backups: join(data, 'backups'),
  ingress: join(data, 'ingress'),
  compiled: join(data, 'compiled'),
})
export type Directories = ReturnType<typeof directories>
