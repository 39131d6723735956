import { expect, it } from 'vitest'
import { ApiFault } from '../../dashboard/src/api/fault.ts'

const refusal = (details: { path: string; message: string }[]) =>
  new ApiFault(422, { error: { code: 'VALIDATION_FAILED', message: 'No.', details } })

it('an entry of a list that was refused is told at the field of the list, counted from 1', () => {
  const details = [
    { path: 'names.1', message: 'must be a host name.' },
    { path: 'names.2', message: 'must be a host name.' },
    { path: 'public_addresses.0', message: 'must be an IP address.' },
  ]
  expect(refusal(details).fields).toEqual({
    names: 'Entry 2 must be a host name.',
    public_addresses: 'Entry 1 must be an IP address.',
  })
})
it('other fields keep their path, also the numbered places in a text', () => {
  const details = [
    { path: 'limits.cpus', message: 'must be at least 0.1.' },
    { path: 'compose.services.web.ports.0', message: 'is refused.' },
  ]
  expect(refusal(details).fields).toEqual({
    'limits.cpus': 'Must be at least 0.1.',
    'compose.services.web.ports.0': 'Is refused.',
  })
})
