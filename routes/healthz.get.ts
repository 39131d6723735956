import { defineEventHandler } from 'h3'

/** Live: the process answers. Without authentication, for supervisors and load balancers. */
export default defineEventHandler(() => ({ status: 'ok' }))
