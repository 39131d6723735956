import { CALLS } from '#server/kernel/calls'
import type { Log } from '#server/kernel/log'
import { type Stall, STALLS, watchStalls } from '#server/kernel/stalls'

/** A program for the tests of the probe: it works 800 ms in one piece in the function `hogTheThread`. */
function hogTheThread(): void {
  const worked = () => process.threadCpuUsage().user / 1000
  const end = worked() + 800
  let waste = 0
  while (worked() < end) for (let at = 0; at < 10_000; at++) waste += Math.sqrt(at)
  if (waste < 0) process.stdout.write('never')
}

watchStalls({ log: { warn: () => {} } as unknown as Log })
process.kill(process.pid, 'SIGUSR2')
setTimeout(() => void CALLS.run('POST /api/hog', hogTheThread), 300)
STALLS.subscribe((stall) => {
  if ((stall as Stall).calls.includes('POST /api/hog')) setTimeout(() => process.exit(0), 500)
})
// The watch does not keep a process alive by itself, and it has to come round once more after the work.
setTimeout(() => process.exit(1), 120_000)
