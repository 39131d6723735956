import { defineTask } from 'nitropack/runtime'
import { runningServices } from '#server/running'

/** Forgets what is past its time: stored answers, old events and jobs. */
export default defineTask({
  meta: {
    name: 'cleanup',
    description: 'Forget stored answers, events and jobs that are past their time',
  },
  run: () => ({ result: runningServices()?.cleanup() }),
})
