/**
 * A process that answers as the engine does for as many containers as it is told, so that the engine's own work
 * does not count in what is measured. What it answers was recorded from a container of the real engine.
 */
import { createServer } from 'node:http'

/** What the real engine answered for one container. */
export interface Recorded {
  listed: Record<string, unknown>
  inspected: { Config: { Labels: Record<string, string> } }
  stats: { read: string; cpu_stats: { cpu_usage: { total_usage: number } } }
}
interface Order {
  socket: string
  recorded: Recorded
  apps: number
}

/** Two of 100 points of a core, which is what a small app uses. */
const CPU_SHARE = 0.02

if (process.send)
  process.once('message', ({ socket, recorded, apps }: Order) => {
    const ids = Array.from({ length: apps }, (_, index) => `container${index}`)
    const labelsOf = (id: string) => ({
      ...recorded.inspected.Config.Labels,
      'portreeve.app': `app_${id.slice('container'.length)}`,
    })
    const listed = ids.map((Id) => ({ ...recorded.listed, Id, Labels: labelsOf(Id) }))
    const inspect = (Id: string) => ({
      ...recorded.inspected,
      Id,
      Config: { ...recorded.inspected.Config, Labels: labelsOf(Id) },
    })
    const use = () => ({
      ...recorded.stats,
      read: new Date().toISOString(),
      cpu_stats: { cpu_usage: { total_usage: Math.round(performance.now() * 1e6 * CPU_SHARE) + 1e9 } },
    })
    createServer((request, response) => {
      const [, id = '', what = ''] =
        /\/containers\/(container\d+)\/(json|stats)/.exec(request.url ?? '') ?? []
      const answers: Record<string, () => unknown> = { json: () => inspect(id), stats: use }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(what ? answers[what]!() : listed))
    }).listen(socket, () => process.send!('ready'))
  })
