import { defineTask } from 'nitropack/runtime'
import { runningServices } from '#server/running'

/** Samples what runs, and evaluates alerts and uptime checks. */
export default defineTask({
  meta: { name: 'metrics', description: 'Sample what runs, evaluate alerts and uptime checks' },
  run: async () => ({ result: await runningServices()?.wake('metrics') }),
})
