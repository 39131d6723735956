import { connect } from 'node:net'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { until } from '../../test/platform/ingress/client.ts'
import { docker } from '../../test/platform/ingress/edge.ts'

/** A HAProxy in the edge's image with a configuration as its manual would have it. */
export interface BareProxy {
  container: string
  close(): Promise<void>
}
/**
 * Where a configuration by hand listens, where its apps are, and how many names it serves: `app-0.test` and
 * so on.
 */
export interface ByHand {
  port: number
  tls_port: number
  origin_port: number
  count: number
}

const TLS = 'ssl crt /bare/tls.pem alpn h2,http/1.1'

export const origin = (port: number): string =>
  `frontend origin\n  bind 127.0.0.1:${port}\n  http-request return status 200 content-type text/plain string "hello, world"\n`

/** What somebody writes who has one app and wants nothing else. */
export const minimal = ({ port, tls_port, origin_port }: ByHand): string =>
  `frontend bare\n  bind :${port}\n  bind :${tls_port} ${TLS}\n  option forwardfor\n  default_backend app-0\nbackend app-0\n  server s1 127.0.0.1:${origin_port}\n`

/**
 * What somebody writes who wants of a proxy what the edge does for every request: names lead to apps, a log
 * with the browser, a request id, what a client says about itself taken away, what the app is told about it,
 * text compressed, and HTTP/3 announced.
 */
export function equal({ port, tls_port, origin_port, count }: ByHand): string {
  const told = [
    'X-Forwarded-For %[src]',
    'X-Real-IP %[src]',
    'X-Forwarded-Host %[req.hdr(host)]',
    'X-Forwarded-Port %[dst_port]',
    'X-Request-Id %[unique-id]',
  ]
  return [
    'ring log',
    '  format raw',
    '  maxlen 4096',
    '  size 8388608',
    'frontend bare',
    `  bind :${port}`,
    `  bind :${tls_port} ${TLS}`,
    '  log ring@log len 4096 local0',
    '  option httplog',
    '  capture request header user-agent len 256',
    "  unique-id-format '%{+X}o%Ts-%pid-%rt'",
    '  compression algo gzip',
    '  compression type text/html text/plain text/css application/javascript application/json image/svg+xml',
    `  http-after-response set-header alt-svc 'h3=":${tls_port}"; ma=3600' if { ssl_fc }`,
    '  http-request del-header ^(x-forwarded-.*|forwarded|x-real-ip)$ -m reg',
    ...told.map((header) => `  http-request set-header ${header}`),
    '  http-request set-header X-Forwarded-Proto https if { ssl_fc }',
    '  http-request set-header X-Forwarded-Proto http unless { ssl_fc }',
    ...(count === 1
      ? ['  acl app hdr(host) -i app-0.test', '  use_backend app-0 if app']
      : ['  use_backend %[req.hdr(host),host_only,lower,map(/bare/hosts.map)]']),
    ...Array.from(
      { length: count },
      (_, index) => `backend app-${index}\n  server s1 127.0.0.1:${origin_port}`,
    ),
    '',
  ].join('\n')
}

/** Starts one that listens on this port, with a file that maps `count` names to their backends. */
export async function startBareProxy(port: number, sections: string, count = 1): Promise<BareProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'portreeve-bare-'))
  await writeFile(join(folder, 'tls.pem'), createSelfSigned(['app-0.test'], new Date(), 90))
  await writeFile(
    join(folder, 'hosts.map'),
    Array.from({ length: count }, (_, index) => `app-${index}.test app-${index}\n`).join(''),
  )
  await writeFile(
    join(folder, 'haproxy.cfg'),
    `global\n  quiet\n  fd-hard-limit 100000\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n${sections}`,
  )
  const container = await docker.createContainer({
    Image: EDGE_IMAGE,
    User: 'root',
    Entrypoint: ['haproxy'],
    Cmd: ['-W', '-db', '-f', '/bare/haproxy.cfg'],
    Labels: { 'portreeve.bench': 'bare' },
    HostConfig: { NetworkMode: 'host', Binds: [`${folder}:/bare:ro`] },
  })
  await container.start()
  await until('the proxy by hand listens', () => listens(port), 30_000)
  return {
    container: container.id,
    async close() {
      await container.remove({ force: true })
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
