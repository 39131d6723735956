import { expect, test } from 'vitest'
import { createChallenges } from '#server/certificates/challenges'
import type { AcmeAuthorization, AcmeSession } from '#server/platform/acme/acme'
import { createFakeIngress } from '#server/platform/ingress/fake/fake'

const authorization = {
  hostname: 'example.com',
  wildcard: true,
  status: 'pending',
  challenges: [{ type: 'dns-01', status: 'pending', token: 't', answer: 'proof', url: 'https://ca.test/1' }],
} as unknown as AcmeAuthorization

/** A zone whose new record is seen at the n-th look only, and how long that is waited for. */
function harness(seen_at: number, patience_ms: number) {
  const steps: string[] = []
  let looks = 0
  const challenges = createChallenges({
    ingress: createFakeIngress(),
    poll_ms: 0,
    patience_ms,
    ports: {
      dnsProvider: () => ({
        check: async () => undefined,
        addTxt: async (name: string) => void steps.push(`write ${name}`),
        removeTxt: async () => undefined,
      }),
      txtValues: async () => {
        steps.push('look')
        return (looks += 1) >= seen_at ? ['older', 'proof'] : ['older']
      },
    } as never,
  })
  const session = {
    accept: async () => void steps.push('tell the authority'),
  } as unknown as AcmeSession
  return {
    steps,
    answer: () =>
      challenges.answer(
        session,
        [authorization],
        'dns-01',
        [],
        () => undefined,
        new AbortController().signal,
      ),
  }
}

test('the authority is told of a TXT record only after the resolvers show it, for it asks once', async () => {
  const { steps, answer } = harness(3, 60_000)
  await answer()
  expect(steps).toEqual(['write _acme-challenge.example.com', 'look', 'look', 'look', 'tell the authority'])
})
test('a record that is never seen fails the attempt with what to check, and the authority is not asked', async () => {
  const { steps, answer } = harness(Number.POSITIVE_INFINITY, 50)
  await expect(answer()).rejects.toThrow(
    /TXT record _acme-challenge\.example\.com was written, but is not seen/,
  )
  expect(steps).not.toContain('tell the authority')
})
