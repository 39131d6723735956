import { describe, expect, it } from 'vitest'
import { ApiFault } from '../../dashboard/src/api/fault.ts'
import { inPages } from '../../dashboard/src/lib/in-pages.ts'
import { readSources } from '../meta/sources.ts'

/** Sentences of the server for people, which name a call that mends something. */
const told = readSources(['server']).flatMap(({ path, text }) =>
  /\/(schema|openapi|asyncapi|pipeline-docs)[^/]*\.ts$/.test(path)
    ? []
    : [...text.matchAll(/ (with|to|under) (POST|PUT|DELETE) \/api\/[\w/:-]+/g)].map(([call]) => call),
)

describe('a call of the API in what the server says', () => {
  it('is a page of the dashboard to whoever sits there', () => {
    expect(inPages('No mail server is configured. Set one with PUT /api/settings/smtp.')).toBe(
      'No mail server is configured. Set one under Settings, Mail.',
    )
    const fault = new ApiFault(422, {
      error: {
        code: 'VALIDATION_ERROR',
        message: 'id: set one with PUT /api/storage-providers/:id.',
        details: [{ path: 'id', message: 'set one with PUT /api/storage-providers/:id.' }],
      },
    })
    expect(fault.message).toBe('id: set one under Backups, Destinations.')
    expect(fault.fields).toEqual({ id: 'Set one under Backups, Destinations.' })
    expect(inPages('Send a gzipped tar to POST /api/apps/:id/upload.')).toBe(
      'Send a gzipped tar with “Upload source” of the app.',
    )
  })
  it('is known as one wherever the server tells how something is mended', () => {
    expect(told.length).toBeGreaterThan(10)
    expect(told.filter((call) => inPages(call).includes('/api/'))).toEqual([])
  })
  it('of any other kind stays as it is', () => {
    expect(inPages('Look at GET /readyz.')).toBe('Look at GET /readyz.')
    expect(inPages('GET /api/nothing/at/all')).toBe('GET /api/nothing/at/all')
  })
})
