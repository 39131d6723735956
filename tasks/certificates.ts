import { defineTask } from 'nitropack/runtime'
import { runningServices } from '#server/running'

/** Renews certificates that are due, and tells of those that end soon. */
export default defineTask({
  meta: {
    name: 'certificates',
    description: 'Renew certificates that are due and tell of those that end soon',
  },
  run: async () => ({ result: await runningServices()?.wake('certificates') }),
})
