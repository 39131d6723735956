import { expect, it } from 'vitest'
import { redactTarget } from '#server/traffic/redact-target'

it.each<[string, string]>([
  ['/plain', '/plain'],
  ['/search?q=red+shoes&page=2', '/search?q=red+shoes&page=2'],
  ['/x?token=abc', '/x?token=[redacted]'],
  ['/x?access_token=abc&next=/home', '/x?access_token=[redacted]&next=/home'],
  ['/x?a=1&API_KEY=abc;password=def', '/x?a=1&API_KEY=[redacted];password=[redacted]'],
  ['/cb?code=4%2F0Ab&state=xyz', '/cb?code=[redacted]&state=[redacted]'],
  ['/x?%74oken=abc', '/x?%74oken=[redacted]'],
  ['/x?user%5Bpassword%5D=abc', '/x?user%5Bpassword%5D=[redacted]'],
  ['/x?X-Amz-Signature=abc', '/x?X-Amz-Signature=[redacted]'],
  ['/x?id=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', '/x?id=[redacted]'],
  ['/x?eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', '/x?[redacted]'],
  ['/x?token=', '/x?token='],
  ['/x?a=b=c&token=x=y', '/x?a=b=c&token=[redacted]'],
  ['/x?%zz=1&token%zz=2', '/x?%zz=1&token%zz=[redacted]'],
  ['/x?q=a?token=b', '/x?q=a?token=b'],
])('of %s the log keeps %s', (target, kept) => {
  expect(redactTarget(target)).toBe(kept)
})
