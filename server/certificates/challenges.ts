import { setTimeout as delay } from 'node:timers/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import type { AcmeAuthorization, AcmeChallenge, AcmeSession } from '#server/platform/acme/acme'
import type { Ingress } from '#server/platform/ingress/ingress'
import type { CertificatePorts } from './ports.ts'

/** One answer that was put where the authority looks for it, so that it can be taken away again. */
export interface PlacedAnswer {
  type: 'http-01' | 'dns-01'
  hostname: string
  token: string
  answer: string
}
export interface ChallengeOptions {
  ingress: Ingress
  ports: CertificatePorts /** How long a new TXT record may take to be seen. */
  patience_ms?: number
  poll_ms?: number
}

const PATIENCE_MS = 180_000
const POLL_MS = 2000
const recordOf = (hostname: string) => `_acme-challenge.${hostname}`

/** Proves to an authority that names are ours: at the edge, or in the DNS zone. */
export function createChallenges({
  ingress,
  ports,
  patience_ms = PATIENCE_MS,
  poll_ms = POLL_MS,
}: ChallengeOptions) {
  function providerFor(hostname: string, wildcard: boolean) {
    const provider = ports.dnsProvider()
    if (!provider)
      throw new Fatal(
        'dns_provider_missing',
        `${wildcard ? `The wildcard *.${hostname}` : hostname} is proven by a TXT record, and no DNS provider is set up.`,
        'An administrator can set one up in the settings, under DNS provider.',
      )
    return provider
  }
  function choose(
    { hostname, wildcard, challenges }: AcmeAuthorization,
    preferred: 'http-01' | 'dns-01',
  ): AcmeChallenge {
    const type = wildcard ? 'dns-01' : preferred
    const challenge = challenges.find((one) => one.type === type)
    if (!challenge)
      throw new Fatal(
        'challenge_missing',
        `The certificate authority does not offer ${type} for ${hostname}.`,
        'Choose another challenge in the settings of ACME.',
      )
    return challenge
  }
  /** The authority asks once: a record that is not seen yet would be a failed validation. */
  async function untilSeen(name: string, value: string, signal: AbortSignal): Promise<void> {
    for (const end = performance.now() + patience_ms; ; ) {
      if ((await ports.txtValues(name, signal)).includes(value)) return
      if (performance.now() + poll_ms > end)
        throw new Fatal(
          'dns_not_propagated',
          `The TXT record ${name} was written, but is not seen at the resolvers after ${Math.round(patience_ms / 1000)} seconds.`,
          'Check that the zone at the DNS provider is the one that the domain is delegated to.',
        )
      await delay(poll_ms, undefined, { signal })
    }
  }
  return {
    /** Puts every open answer in its place, remembers it in `placed`, and tells the authority. */
    async answer(
      session: AcmeSession,
      authorizations: readonly AcmeAuthorization[],
      preferred: 'http-01' | 'dns-01',
      placed: PlacedAnswer[],
      save: () => void,
      signal: AbortSignal,
    ): Promise<void> {
      const open = authorizations
        .filter(({ status }) => status === 'pending')
        .map((authorization) => ({ authorization, challenge: choose(authorization, preferred) }))
      for (const {
        authorization: { hostname, wildcard },
        challenge: { type, token, answer },
      } of open) {
        if (!placed.some((one) => one.answer === answer)) placed.push({ type, hostname, token, answer })
        save()
        if (type === 'http-01') await ingress.setChallenge({ hostname, token, key_authorization: answer })
        else await providerFor(hostname, wildcard).addTxt(recordOf(hostname), answer, signal)
      }
      for (const {
        authorization: { hostname },
        challenge,
      } of open)
        if (challenge.type === 'dns-01') await untilSeen(recordOf(hostname), challenge.answer, signal)
      for (const { challenge } of open)
        if (challenge.status === 'pending') await session.accept(challenge, signal)
    },
    /**
     * Takes every answer away again; what cannot be removed now is told to nobody, because a leftover proves
     * nothing to anyone.
     */
    async remove(placed: PlacedAnswer[], save: () => void): Promise<void> {
      const provider = ports.dnsProvider()
      await Promise.allSettled(
        placed.map(({ type, hostname, token, answer }) =>
          type === 'http-01'
            ? ingress.removeChallenge({ hostname, token })
            : provider?.removeTxt(recordOf(hostname), answer, AbortSignal.timeout(30_000)),
        ),
      )
      placed.splice(0)
      save()
    },
  }
}
export type Challenges = ReturnType<typeof createChallenges>
