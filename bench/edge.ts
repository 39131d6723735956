/**
 * Measures the edge: `npx node bench/edge.ts [switches] [changes] [latency] [throughput]` (all without a name). Needs the container engine and
 * the edge's image. Prints what was sent and lost during switches, and during 200 changes of other things, how long a change takes
 * with 10 and 10,000 routes, and throughput and latency as ratios to HAProxy with a configuration by hand.
 */
import { changeReport } from './edge-changes.ts'
import { latencyReport } from './edge-latency.ts'
import { switchReport } from './edge-switches.ts'
import { throughputReport } from './edge-throughput.ts'
import { createReport } from './support/report.ts'

const reports = { switches: switchReport, changes: changeReport, latency: latencyReport }
const chosen = process.argv.slice(2)
const isChosen = (name: string) => chosen.length === 0 || chosen.includes(name)
for (const [name, report] of Object.entries(reports)) {
  if (isChosen(name)) console.log(`${name}\n${(await report()).map((line) => `  ${line}`).join('\n')}`)
}
if (isChosen('throughput')) {
  const report = createReport('throughput')
  await throughputReport(report)
  report.end()
}
