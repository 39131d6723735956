import type { Engine } from '../engine.ts'
import { followLog } from './instance.ts'
import type { FakeInstances } from './instances.ts'

/** What watching needs of the fake engine. */
interface Watched {
  instances: FakeInstances
  /** Bytes that instances wrote into their containers, by id. */
  layers: ReadonlyMap<string, number>
  called(method: keyof Engine, ...args: unknown[]): void
}

/** Logs, numbers and events of fake instances. */
export function fakeWatch({
  called,
  instances,
  layers,
}: Watched): Pick<Engine, 'logs' | 'stats' | 'events' | 'layerBytes'> {
  return {
    async layerBytes(instance_id) {
      called('layerBytes', instance_id)
      return layers.get(instance_id) ?? 0
    },
    async *logs(instance_id, options, signal) {
      called('logs', instance_id, options)
      const instance = instances.get(instance_id)
      const follower = options.follow && instances.all().includes(instance) ? followLog(instance) : undefined
      const stop = () => follower?.end()
      signal?.addEventListener('abort', stop)
      try {
        const kept = instance.log.filter(
          (line) =>
            (!options.since || line.at >= options.since) && (!options.until || line.at <= options.until),
        )
        yield* options.tail === undefined ? kept : kept.slice(Math.max(0, kept.length - options.tail))
        if (follower && !signal?.aborted) yield* follower
      } finally {
        signal?.removeEventListener('abort', stop)
      }
    },
    async stats(instance_id) {
      called('stats', instance_id)
      if (instances.find(instance_id)?.record.state !== 'running') return undefined
      return {
        at: new Date().toISOString(),
        cpu_cores: 0.01,
        memory_bytes: 20 * 1024 ** 2,
        network_rx_bytes: 1000,
        network_tx_bytes: 2000,
      }
    },
    events(signal) {
      called('events')
      return instances.events(signal)
    },
  }
}
