import { defineTask } from 'nitropack/runtime'
import { runningServices } from '#server/running'

/** Looks at every domain whose time has come. */
export default defineTask({
  meta: {
    name: 'domains',
    description: 'Look up domains that are not proven yet, and now and then those that are',
  },
  run: async () => ({ result: await runningServices()?.wake('domains') }),
})
