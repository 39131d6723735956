import { describe, expect, it } from 'vitest'
import { blankCheck, bodyOf } from '../../dashboard/src/features/monitoring/check-body.ts'

describe('the form of an uptime check', () => {
  const draft = { ...blankCheck(), name: 'Shop', target: 'https://shop.example.com/', days_left: 9 }
  it('sends what its kind looks at, and nothing of the others', () => {
    const sent = bodyOf({ ...draft, expected_status: '204', expected_text: 'ready' })
    expect(sent).toEqual({
      name: 'Shop',
      target: 'https://shop.example.com/',
      interval_s: 60,
      public: false,
      expected_status: 204,
      expected_text: 'ready',
    })
    expect(bodyOf({ ...draft, kind: 'tls', interval_s: '300' })).toMatchObject({
      interval_s: 300,
      days_left: 9,
    })
    expect(bodyOf({ ...draft, kind: 'tcp' })).not.toHaveProperty('days_left')
  })
  it('expects nothing of what was emptied', () => {
    const sent = bodyOf({ ...draft, expected_status: '', expected_text: '' })
    expect(sent).toMatchObject({ expected_status: null, expected_text: null })
    expect(bodyOf({ ...draft, kind: 'tls', days_left: '' })).toMatchObject({ days_left: null })
  })
})
