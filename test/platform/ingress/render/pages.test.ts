import { expect, test } from 'vitest'
import { MAINTENANCE_PAGE, PAGES } from '#server/platform/ingress/render/pages'

const pages = [
  ...Object.values(PAGES).map((answer) => answer.slice(answer.indexOf('\r\n\r\n') + 4)),
  MAINTENANCE_PAGE,
]

test('a page needs nothing from elsewhere, runs nothing and names no product', () => {
  for (const page of pages) {
    expect(page).not.toMatch(/<script|src=|href=|url\(|@import|https?:/i)
    expect(page).not.toMatch(/haproxy|portreeve/i)
    expect(page).toMatch(/<html lang="en">.*<title>[^<]+<\/title>/s)
    expect(page).toContain('prefers-color-scheme:dark')
    expect(page.length).toBeLessThan(4_096)
  }
})

test('an answer states its length, that no cache may keep it, and that it may load nothing', () => {
  for (const [status, answer] of Object.entries(PAGES)) {
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(head).toContain('Cache-Control: no-store')
    expect(head).toContain("Content-Security-Policy: default-src 'none'")
    expect(head).toContain(`Content-Length: ${Buffer.byteLength(body)}`)
  }
})
