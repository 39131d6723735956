/**
 * Measures the edge: `node bench/edge.ts [switches] [changes] [latency] [throughput]` (all without a name). Needs the container engine and
 * the edge's image. Prints what was sent and lost during switches, and during 200 changes of other things, how long a change takes
 * with 10 and 10,000 routes, and the throughput as a ratio to a bare HAProxy with a hand-written configuration.
 */
import { changeReport } from './edge-changes.ts'
import { latencyReport } from './edge-latency.ts'
import { switchReport } from './edge-switches.ts'
import { throughputReport } from './edge-throughput.ts'

const reports = { switches: switchReport, changes: changeReport, latency: latencyReport, throughput: throughputReport }
const chosen = process.argv.slice(2)
for (const [name, report] of Object.entries(reports)) {
  if (chosen.length === 0 || chosen.includes(name)) console.log(`${name}\n${(await report()).map((line) => `  ${line}`).join('\n')}`)
}
