import { newId } from '#server/kernel/ids'
import type { Workload } from '#server/platform/engine/workload'

/** A small workload of an app; tests name what they care about. */
export const testWorkload = (more: Partial<Workload> & Pick<Workload, 'image' | 'network'>): Workload => ({
  owner: { kind: 'app', id: newId('app') },
  project_id: newId('prj'),
  release_id: newId('rel'),
  environment: {},
  limits: { cpus: 1, memory_bytes: 64 * 1024 ** 2, pids: 64 },
  stop_grace_s: 1,
  probe: { type: 'none', grace_s: 1 },
  placement: { node: 'local' },
  replicas: 1,
  update: 'start_first',
  ...more,
})
