import { DEFAULT_PAGES_MAP, renderDefaultPages } from './error-pages.ts'
import { MAINTENANCE_PAGE, PAGES } from './pages.ts'
import { PROGRAM_FILE, renderProgram } from '../runtime/program.ts'
import type { EdgeSettings } from '../edge-settings.ts'
import { renderApp } from './app.ts'
import { CROWD_GLOBAL } from './crowd.ts'
import { renderFrontends } from './frontends.ts'
import { HTTP3_GLOBAL } from './http3.ts'
import { renderLogSocket, RING } from './log.ts'

/** The files that no route changes. */
export function renderBase(settings: EdgeSettings): Map<string, string> {
  const files = new Map([
    ['config/00-edge.cfg', renderEdge(settings)],
    [PROGRAM_FILE, renderProgram()],
  ])
  files.set('pages/maintenance.html', MAINTENANCE_PAGE)
  files.set(DEFAULT_PAGES_MAP, renderDefaultPages())
  for (const [status, page] of Object.entries(PAGES)) files.set(`pages/${status}.http`, page)
  return files
}

function renderEdge(settings: EdgeSettings): string {
  return [
    ...GLOBAL,
    ...renderLogSocket(settings),
    ...HTTP3_GLOBAL,
    '',
    ...RING,
    '',
    ...DEFAULTS,
    '',
    ...renderFrontends(settings),
    '',
    ...renderApp(settings),
    '',
  ].join('\n')
}

/**
 * `quiet` still prints what is wrong with a configuration; without it a reload prints four lines per backend.
 * A listening port is ours alone (`noreuseport`): otherwise two installations could share one without
 * noticing.
 */
const GLOBAL = [
  'global',
  `  lua-load-per-thread /edge/${PROGRAM_FILE}`,
  '  quiet',
  '  user haproxy',
  '  group haproxy',
  '  fd-hard-limit 100000',
  '  noreuseport',
  '  mworker-max-reloads 20',
  '  tune.bufsize 16384',
  '  tune.http.maxhdr 128',
  CROWD_GLOBAL,
  '  ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets',
  '  ssl-default-bind-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305',
]

const DEFAULTS = [
  'defaults edge',
  '  mode http',
  '  timeout connect 2s',
  '  timeout client 60s',
  '  timeout client-hs 10s',
  '  timeout client-fin 30s',
  '  timeout server 5m',
  '  timeout tunnel 1h',
  '  timeout http-request 10s',
  '  timeout http-keep-alive 75s',
  '  option dontlognull',
  '  option abortonclose',
  '  option http-no-delay',
  '  option idle-close-on-response',
  '  option http-restrict-req-hdr-names delete',
  '  retries 3',
  '  option redispatch 1',
  ...Object.keys(PAGES).map((status) => `  errorfile ${status} /edge/pages/${status}.http`),
]
