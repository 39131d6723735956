import { createMachine } from '#server/kernel/machine'
import type { NodeStateName } from './schema.ts'

export type NodeEventName = 'join' | 'answer' | 'lose' | 'fail' | 'remove' | 'keep'

/** States of servers, and what leads from one to the next. Also in docs/states.md. */
export const nodeMachine = createMachine<NodeStateName, NodeEventName>('a server', {
  joining: { answer: 'ready', fail: 'failed', remove: 'removing' },
  ready: { answer: 'ready', lose: 'unreachable', remove: 'removing' },
  unreachable: { answer: 'ready', lose: 'unreachable', remove: 'removing' },
  failed: { join: 'joining', remove: 'removing' },
  removing: { answer: 'removing', lose: 'removing', keep: 'ready', fail: 'failed' },
})
