import { origin } from '#dashboard'
import { defineEventHandler } from 'h3'
import { createDashboard } from '#server/http/dashboard'
import type { Services } from '#server/modules'

const dashboard = createDashboard(origin)

/** The dashboard, under every address that is not the API's: its pages are told apart in the browser. */
export default defineEventHandler((event) => {
  const services = event.context.services as Services | undefined
  return dashboard.page(event, services?.identity.firstRun())
})
