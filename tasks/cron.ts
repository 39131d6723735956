import { defineTask } from 'nitropack/runtime'
import { runningServices } from '#server/running'

/** Begins cron jobs of users that are due. */
export default defineTask({
  meta: { name: 'cron', description: 'Begin cron jobs that are due' },
  run: async () => ({ result: await runningServices()?.wake('cron') }),
})
