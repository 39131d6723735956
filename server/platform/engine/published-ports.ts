import { EngineError } from './engine.ts'
import type { Workload } from './workload.ts'

export interface PortRange {
  first: number
  last: number
}

/** Below lies what the system and the platform listen on, above where the kernel takes its outgoing ports. */
export const DEFAULT_PUBLISHED_PORTS: PortRange = { first: 10_000, last: 32_767 }
/** Never published, whatever the range: SSH, the edge, the engine's API, common consoles. */
const RESERVED_PORTS: readonly number[] = [22, 80, 443, 2375, 2376, 9000]

/** Refuses ports outside the range, and ports of a workload with several replicas, which cannot share one. */
export function requirePublishable({ ports = [], replicas }: Workload, range: PortRange): void {
  if (ports.length > 0 && replicas > 1)
    throw new EngineError(
      'port_refused',
      'A published port leads to one container, and this workload has several replicas.',
      'Use one replica, or publish no port.',
    )
  for (const { host_port, container_port } of ports) {
    if (!isPublishable(host_port, range))
      throw new EngineError(
        'port_refused',
        `Port ${host_port} of the server cannot be published.`,
        `Choose one from ${range.first} to ${range.last}.`,
      )
    if (!Number.isInteger(container_port) || container_port < 1 || container_port > 65_535)
      throw new EngineError('port_refused', `${container_port} is not a port.`, 'Choose one from 1 to 65535.')
  }
}

/** Whether a port of the host may be published. */
export const isPublishable = (port: number, range: PortRange = DEFAULT_PUBLISHED_PORTS): boolean =>
  Number.isInteger(port) && port >= range.first && port <= range.last && !RESERVED_PORTS.includes(port)
