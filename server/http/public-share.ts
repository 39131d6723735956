import type { H3Event } from 'h3'
import type { HttpPorts } from './context.ts'
import { factsOf } from './request.ts'
import { type AnswerShare, answerShare } from './untaken.ts'

/**
 * What somebody without an account has of the process, by their address: a turn, and room for answers that they have
 * not taken yet. Throws RATE_LIMITED for whoever takes none.
 */
export async function takePublicShare(event: H3Event, services: HttpPorts): Promise<AnswerShare> {
  const { address } = factsOf(event, services)
  await services.http.turn(address)
  const share = answerShare(event.node, services.http.answers, address)
  share.requireRoom()
  return share
}
