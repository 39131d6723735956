import { defineTask } from 'nitropack/runtime'
import { runningServices } from '#server/running'

/** Work around builds that modules schedule, such as removing old images. */
export default defineTask({
  meta: { name: 'builds', description: 'Work around builds that modules schedule' },
  run: async () => ({ result: await runningServices()?.wake('builds') }),
})
