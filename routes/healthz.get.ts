import { defineEventHandler } from 'h3'
import { handOver } from '#server/http/reply'

/** Live: the process answers. Without authentication, for supervisors and load balancers. */
export default defineEventHandler((event) => handOver(event, { status: 'ok' }))
