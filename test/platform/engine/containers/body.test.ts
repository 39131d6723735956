import { expect, test } from 'vitest'
import { capsOf, containerBody, specFingerprint } from '#server/platform/engine/containers/body'
import { createLabelScope } from '#server/platform/engine/labels'
import { testWorkload } from '#test/support/workload'

const scope = createLabelScope('default')
const plain = testWorkload({
  owner: { kind: 'app', id: 'app_x' },
  project_id: 'prj_x',
  release_id: 'rel_x',
  image: 'sha256:1',
  shell_command: 'npm start',
  environment: { PORT: '3000', NODE_ENV: 'production' },
  network: 'ptr-x',
  limits: { cpus: 0.5, memory_bytes: 536_870_912, pids: 512 },
  stop_grace_s: 10,
})

test('a plain app has the fingerprint that 0.1.0 put on its containers, so that an upgrade restarts none', () => {
  expect(specFingerprint(scope, plain)).toBe('97a0a851e895fa21a425be0b99f2ea3b')
  expect(specFingerprint(scope, { ...plain, mounts: [] })).toBe('97a0a851e895fa21a425be0b99f2ea3b')
})

test('what only an empty volume is filled by is in the container, and changes nothing about which one it is', () => {
  const first = { ...plain, first_environment: { NODE_ENV: 'first', INIT: '1' } }
  expect(containerBody(scope, first, { labels: {} }).Env).toEqual(['PORT=3000', 'NODE_ENV=first', 'INIT=1'])
  expect(specFingerprint(scope, first)).toBe(specFingerprint(scope, plain))
})

test('a container is made anew when a mount, the text of a file, a port or its owner changes', () => {
  const file = (content: string) => ({ kind: 'file' as const, path: '/etc/x', content, mode: 0o644 })
  const volume = (volume_id: string) => ({
    kind: 'volume' as const,
    volume_id,
    path: '/data',
    read_only: false,
  })
  const prints = [
    plain,
    { ...plain, mounts: [file('a')] },
    { ...plain, mounts: [file('b')] },
    { ...plain, mounts: [volume('vol_a')] },
    { ...plain, mounts: [volume('vol_b')] },
    { ...plain, mounts: [{ ...volume('vol_b'), read_only: true }] },
    { ...plain, ports: [{ container_port: 80, host_port: 20_000, protocol: 'tcp' as const }] },
    { ...plain, owner: { kind: 'database' as const, id: 'app_x' } },
    { ...plain, process: 'worker' },
  ].map((workload) => specFingerprint(scope, workload))
  expect(new Set(prints).size).toBe(prints.length)
})

test('cores that the engine would round to none, which is its word for all of them, are a limit all the same', () => {
  for (const cpus of [0, 1e-10, 1e-6, 0.009]) {
    const few = { ...plain, limits: { ...plain.limits, cpus } }
    expect(containerBody(scope, few, { labels: {} }).HostConfig.NanoCpus).toBe(1e7)
    expect(capsOf(few).NanoCpus).toBe(1e7)
  }
})
