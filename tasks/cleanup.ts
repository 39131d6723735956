import { defineTask } from 'nitropack/runtime'
import { runningServices } from '#server/running'

/** Work of modules that keeps the house clean: forgetting what is past its time, measuring, sweeping. */
export default defineTask({
  meta: { name: 'cleanup', description: 'Forget what is past its time, measure and sweep' },
  run: async () => ({ result: await runningServices()?.wake('cleanup') }),
})
