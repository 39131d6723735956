import { origin } from '#dashboard'
import { defineEventHandler, getRouterParam } from 'h3'
import { createDashboard } from '#server/http/dashboard'

const dashboard = createDashboard(origin)

/** Scripts, styles and pictures of the dashboard. */
export default defineEventHandler((event) => dashboard.asset(event, getRouterParam(event, 'file') ?? ''))
