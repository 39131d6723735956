import { docker, eventually, type Portreeve } from '#test/support/portreeve'
import { edgeContainer } from '#test/support/edge-container'
import { median, ms, type Report } from './support/report.ts'
import { onStage } from './support/stage.ts'

const ROUNDS = 3
const LIMIT_MS = 5_000

/** How long apps are away after the proxy was killed, and after somebody removed the edge. */
export const recoveryReport = (report: Report): Promise<void> =>
  onStage(async ({ portreeve, app }) => {
    const { host } = await app('served')
    const faults = {
      'the proxy killed': () =>
        process.kill(
          Number(docker('inspect', edgeContainer(portreeve), '--format', '{{.State.Pid}}')),
          'SIGKILL',
        ),
      'the edge removed': () => docker('rm', '-f', edgeContainer(portreeve)),
    }
    for (const [name, happen] of Object.entries(faults)) {
      const took: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        happen()
        const began = performance.now()
        await eventually('The app being served', () => serves(portreeve, host))
        took.push(performance.now() - began)
      }
      const away_ms = median(took)
      report.check(`${name}: apps are back within ${LIMIT_MS / 1000} s`, away_ms < LIMIT_MS, ms(away_ms))
    }
  })

const serves = (portreeve: Portreeve, host: string) =>
  portreeve.visit(host).then((answer) => (answer.status === 200 ? true : undefined))
