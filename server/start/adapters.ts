import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { directories } from '#server/kernel/directories'
import type { Db } from '#server/kernel/db'
import { createMeta } from '#server/kernel/meta'
import { createNames } from '#server/platform/dns/names'
import { createDnsResolver } from '#server/platform/dns/resolver'
import { createConnection } from '#server/platform/engine/connection'
import { authoritiesOf } from '#server/platform/outbound/authorities'
import { createAcmeApart } from '#server/platform/acme/apart'
import { createCluster } from '#server/platform/cluster/create'
import { createNodePolicy } from '#server/platform/cluster/node-policy'
import { createDockerEngine } from '#server/platform/engine/docker'
import { createGit } from '#server/platform/git/cli'
import { createHostGuard } from '#server/platform/host-rules/host-guard'
import { createListedAddresses } from '#server/platform/host-rules/listed-addresses'
import { createHaproxyIngress } from '#server/platform/ingress/haproxy'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createConnectProxy } from '#server/platform/outbound/connect-proxy'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import type { Adapters, Kernel } from '#server/platform/base'

/**
 * What marks this installation's containers and images: several share an engine without taking each other's
 * for orphans.
 */
const installationName = (db: Db): string =>
  createMeta(db).ensure('installation', () => randomBytes(8).toString('hex'))

/** The real world: a container engine, the git command and HAProxy. */
export async function createAdapters({ config, db, log }: Kernel): Promise<Adapters> {
  const paths = directories(config.data_directory)
  const names = createNames()
  const policy = createOutboundPolicy({
    allowed_private_hosts: config.allowed_private_hosts,
    resolver: names,
  })
  const guard = createHostGuard({
    config,
    edge_ports: [config.http_port, config.https_port, 80, 443],
    log: log.child({ part: 'guard' }),
  })
  const installation = installationName(db)
  const listed = createListedAddresses(config.allowed_private_hosts, names)
  const { cluster, engine } = createCluster(
    {
      docker_host: config.docker_host,
      installation,
      layer_bytes: config.layer_bytes,
      dial: createDial(createNodePolicy(names)),
      async openings() {
        await listed.lookUp()
        return listed.openings()
      },
      admit: (addresses, port) => guard.egress.admit(addresses, port),
      log: (message) => log.info(message, { part: 'cluster' }),
    },
    (takenRanges) =>
      createDockerEngine({
        docker_host: config.docker_host,
        installation,
        layer_bytes: config.layer_bytes,
        openPorts: () => guard.egress.openPorts(),
        watchMemory: guard.memory.watch,
        watchHoles: guard.holes.watch,
        takenRanges,
        log: (message) => log.debug(message, { part: 'engine' }),
      }),
  )
  const git = createGit({
    policy,
    proxy: await createConnectProxy(policy),
    work_directory: join(paths.work, 'git'),
    ...(config.ca_file ? { ca_file: config.ca_file } : {}),
  })
  const ingress = createHaproxyIngress({
    engine: createConnection(config.docker_host),
    data_directory: paths.ingress,
    http_port: config.http_port,
    https_port: config.https_port,
    trusted_proxies: config.trusted_proxies,
    log: log.child({ part: 'edge' }),
  })
  const ca = authoritiesOf(config.ca_file)
  const acme = createAcmeApart({ client: createGuardedClient(policy, ca ? { ca } : {}) })
  return { engine, cluster, git, ingress, acme, guard, dns: createDnsResolver(), names }
}
