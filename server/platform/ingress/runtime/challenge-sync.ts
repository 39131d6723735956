import { checkChallenge } from '../check.ts'
import type { Challenge } from '../ingress.ts'
import { IngressError } from '../ingress.ts'
import type { MasterCli } from './master-cli.ts'
import { CHALLENGES_MAP } from '../render/maps.ts'
import { EDGE_ROOT } from '../render/render.ts'
import type { EdgeStore } from '../store.ts'

/**
 * Lets the edge answer challenges of a certificate authority by itself, so that they are answered though the
 * app is down or redirects everything.
 */
export interface ChallengeSync {
  set(store: EdgeStore, challenge: Challenge): Promise<void>
  remove(store: EdgeStore, challenge: Pick<Challenge, 'hostname' | 'token'>): Promise<void>
}

const MAP = `${EDGE_ROOT}/${CHALLENGES_MAP}`
const keyOf = ({ hostname, token }: Pick<Challenge, 'hostname' | 'token'>) =>
  `${hostname}/.well-known/acme-challenge/${token}`

export function createChallengeSync(cli: MasterCli): ChallengeSync {
  return {
    async set(store, challenge) {
      checkChallenge(challenge)
      const key = keyOf(challenge)
      await store.putChallenge(key, challenge.key_authorization)
      const known = (await cli.run([`get map ${MAP} ${key}`])).includes('found=yes')
      const output = await cli.run([
        `${known ? 'set' : 'add'} map ${MAP} ${key} ${challenge.key_authorization}`,
      ])
      if (output.trim() !== '')
        throw new IngressError(`The edge refused the challenge of ${challenge.hostname}: ${output.trim()}`)
    },
    async remove(store, challenge) {
      checkChallenge({ ...challenge, key_authorization: 'none' })
      const key = keyOf(challenge)
      if (!store.challenges.has(key)) return
      await store.putChallenge(key, undefined)
      await cli.run([`del map ${MAP} ${key}`])
    },
  }
}
