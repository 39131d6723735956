import { expect, it } from 'vitest'
import { faultOfEdge } from '#server/platform/ingress/version'

it.each(['3.0.18', '3.0.9-7f0031e', '3.0.11-1234567'])('HAProxy %s is told to be at fault', (version) => {
  expect(faultOfEdge(version)).toContain(`HAProxy ${version} `)
})
it.each(['3.0.19', '3.0.20-7f0031e', '3.0.11-1+deb13u4', '3.2.4'])(
  'nothing is known against HAProxy %s: it is newer, or a package that is mended under its number',
  (version) => expect(faultOfEdge(version)).toBeUndefined(),
)
