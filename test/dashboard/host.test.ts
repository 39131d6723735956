import { expect, it } from 'vitest'
import { hostIn } from '../../dashboard/src/features/domains/host.ts'

it('the address of a page is taken for the name in it, and nothing else is changed', () => {
  expect(
    ['https://shop.example.com/', 'HTTP://shop.example.com', ' shop.example.com ', '*.example.com'].map(
      hostIn,
    ),
  ).toEqual(['shop.example.com', 'shop.example.com', 'shop.example.com', '*.example.com'])
  // What is more than a name is the server's to refuse.
  expect(hostIn('https://shop.example.com/path')).toBe('shop.example.com/path')
})
