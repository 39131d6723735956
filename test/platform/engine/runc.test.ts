import { expect, it } from 'vitest'
import { takesLinksForDevices } from '#server/platform/engine/runc'

it.each([
  ['1.1.5+ds1', true],
  ['1.2.7', true],
  ['1.3.2', true],
  ['1.0.0-rc93', true],
  ['', true],
  ['1.2.8', false],
  ['1.3.3', false],
  ['1.4.0', false],
  ['v2.0.0', false],
])('runc %s takes links for devices: %s', (version, takes) =>
  expect(takesLinksForDevices(version)).toBe(takes),
)
