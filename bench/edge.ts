/**
 * Measures the edge: `npx node bench/edge.ts [switches] [changes] [latency] [api] [recovery] [throughput]`
 * (all without a name). Needs the container engine and the edge's image, `api` and `recovery` the built
 * server as well. Prints what was sent and lost during switches, and during 200 changes of other things, how
 * long a change takes with 10 and 10,000 routes, at the edge alone and through the API, how long apps are away
 * after the edge was killed or removed, and throughput and latency as ratios to HAProxy with a configuration by
 * hand.
 */
import { apiReport } from './edge-api.ts'
import { changeReport } from './edge-changes.ts'
import { latencyReport } from './edge-latency.ts'
import { recoveryReport } from './edge-recovery.ts'
import { switchReport } from './edge-switches.ts'
import { throughputReport } from './edge-throughput.ts'
import { createReport, type Report } from './support/report.ts'

const reports: Record<string, (report: Report) => Promise<void>> = {
  switches: switchReport,
  changes: changeReport,
  latency: latencyReport,
  api: apiReport,
  recovery: recoveryReport,
  throughput: throughputReport,
}
const chosen = process.argv.slice(2)
const unknown = chosen.filter((name) => !(name in reports))
if (unknown.length > 0) throw new Error(`${unknown.join(', ')}: none of ${Object.keys(reports).join(', ')}.`)
for (const name of chosen.length === 0 ? Object.keys(reports) : chosen) {
  const report = createReport(name)
  await reports[name]!(report)
  report.end()
}
