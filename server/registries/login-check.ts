import { own } from '#server/kernel/own'
import { invalid } from '#server/kernel/errors'
import type { GuardedClient } from '#server/platform/outbound/client'
import { parseChallenge } from '#server/platform/outbound/challenge'
import { OutboundError } from '#server/platform/outbound/outbound'

export interface RegistryLogin {
  host: string
  username: string
  password: string
}

/** Docker Hub answers under another name than its images have. */
const API_HOST: Record<string, string> = { 'docker.io': 'registry-1.docker.io' }

const basic = ({ username, password }: RegistryLogin) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
const wrong = () => invalid('password', 'was refused by the registry. Check user name and password or token.')

/** HTTPS, and for a host that the operator listed plain HTTP when HTTPS does not answer. */
async function firstAnswer(client: GuardedClient, host: string) {
  try {
    return { base: `https://${host}`, answer: await client.send(`https://${host}/v2/`) }
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'forbidden' || error.code === 'invalid')
      throw error
    return client.send(`http://${host}/v2/`).then(
      (answer) => ({ base: `http://${host}`, answer }),
      () => {
        throw error
      },
    )
  }
}

/**
 * Logs in as the engine would at a pull, and throws a 422 that says what is wrong. The password goes to the
 * registry, and to the token service that it names over the same scheme, and nowhere else.
 */
export async function checkRegistryLogin(client: GuardedClient, login: RegistryLogin): Promise<void> {
  try {
    const { base, answer } = await firstAnswer(client, own(API_HOST, login.host) ?? login.host)
    await answer.discard()
    const { scheme, parameters } = parseChallenge(answer.headers['www-authenticate'] ?? '')
    if (answer.status === 200) return
    if (answer.status !== 401) throw invalid('host', `does not answer as a registry (HTTP ${answer.status}).`)
    if (scheme === 'basic') return await expectAccepted(client, `${base}/v2/`, basic(login))
    const { realm = '', service } = parameters
    if (scheme !== 'bearer' || !URL.canParse(realm) || new URL(realm).protocol !== new URL(base).protocol)
      throw invalid('host', 'does not answer as a registry.')
    const url = new URL(realm)
    if (service) url.searchParams.set('service', service)
    url.searchParams.set('account', login.username)
    await expectAccepted(client, url.href, basic(login))
  } catch (error) {
    if (error instanceof OutboundError) throw invalid('host', `cannot be used: ${error.message}`)
    throw error
  }
}

async function expectAccepted(client: GuardedClient, url: string, authorization: string): Promise<void> {
  const answer = await client.send(url, { headers: { authorization } })
  await answer.discard()
  if (answer.status === 401 || answer.status === 403) throw wrong()
  if (answer.status !== 200) throw invalid('host', `answered the login with HTTP ${answer.status}.`)
}
