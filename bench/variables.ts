/**
 * How long the import of 1,000 variables takes, from the request to the answer, into an app and again over what is
 * there. `npx node bench/variables.ts [--rounds=10] [--variables=1000]`
 */
import { startPortreeve } from '#test/support/portreeve'
import { createReport, median, ms, numberOptions } from './support/report.ts'

const MOST_MS = 200
const options = numberOptions({ rounds: 10, variables: 1000 })
const report = createReport(`Import of ${options.variables} variables`)
const portreeve = await startPortreeve()
const textOf = (round: number) =>
  Array.from({ length: options.variables }, (_, i) => `KEY_${i}='value ${i} of round ${round}'\n`).join('')
try {
  const fresh: number[] = []
  const again: number[] = []
  for (let round = 0; round < options.rounds; round += 1) {
    const app = { name: `many-${round}`, source: 'upload' }
    const { id } = (await portreeve.call('POST', '/api/apps', app)).body.data
    for (const times of [fresh, again]) {
      const text = textOf(times === fresh ? 1 : 2)
      const began = performance.now()
      const { status } = await portreeve.call('POST', `/api/apps/${id}/env/import`, { text })
      times.push(performance.now() - began)
      if (status >= 300) throw new Error(`The import was answered with ${status}.`)
    }
  }
  for (const [what, times] of [
    ['new ones', fresh],
    ['changed ones', again],
  ] as const)
    report.check(
      `${what}, median, at most ${MOST_MS} ms`,
      median(times) <= MOST_MS,
      `${ms(median(times))}, slowest ${ms(Math.max(...times))}`,
    )
} finally {
  await portreeve.dispose()
}
report.end()
