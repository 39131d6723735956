import { defineTask } from 'nitropack/runtime'
import { runningServices } from '#server/running'

/** Begins backups that are due. */
export default defineTask({
  meta: { name: 'backups', description: 'Begin backups that are due' },
  run: async () => ({ result: await runningServices()?.wake('backups') }),
})
