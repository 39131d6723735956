import { expect, it } from 'vitest'
import { nextPage } from '@/lib/next-page'

it('a login leads to the page that was asked for, and never away from here', () => {
  expect(nextPage('/apps/app_1/logs?line=3#x')).toBe('/apps/app_1/logs?line=3#x')
  // Addresses are read without the tabs and line breaks in them.
  const hidden = ['/\t/evil.example', '/\n\\evil.example']
  const elsewhere = [
    ...hidden,
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    'javascript:alert(1)',
    '',
  ]
  for (const next of [...elsewhere, undefined, null, ['/apps', '/x']]) expect(nextPage(next)).toBe('/')
})
