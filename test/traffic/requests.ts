import type { EdgeRequest } from '#server/platform/ingress/ingress'

let count = 0
/** A request as the edge tells it. */
export const request = (changes: Partial<EdgeRequest> = {}): EdgeRequest => ({
  id: `T-${++count}`,
  app_id: 'app_1',
  at_ms: Date.parse('2026-01-31T12:00:00.000Z'),
  client: '203.0.113.7',
  method: 'GET',
  host: 'shop.test',
  target: '/',
  version: 'HTTP/1.1',
  secure: true,
  status: 200,
  bytes_in: 100,
  bytes_out: 200,
  user_agent: 'tester',
  server: '10.0.0.1:80',
  end: '--',
  receive_ms: 0,
  queue_ms: 0,
  connect_ms: 1,
  response_ms: 4,
  total_ms: 6,
  ...changes,
})
