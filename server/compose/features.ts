import { CAPABILITIES } from '#server/platform/engine/workload'
import { type Features, ignored, off, oneOf, refused, taken } from './feature.ts'

/**
 * Every key of the Compose Specification and what becomes of it. A test compares it with the
 * specification's own JSON schema, and `docs/compose.md` is written from it.
 */

const HOST = 'It would reach the host or another app.'
const GIVEN = 'The platform gives names and addresses.'
const LABELS = 'Containers carry the platform’s labels only.'
const CPU = 'Set `cpus` instead: shares and quotas of the kernel are not taken.'
const EXTERNAL = 'It names something outside of the file.'
const PULLED =
  'An image that is named as before is not looked up again, unless a deployment asks for `no_cache`.'
const BUILDER = 'The platform decides how images are built, cached and named.'

const external = { external: refused(EXTERNAL, off) }
const named = { name: ignored(GIVEN), labels: ignored(LABELS) }

const BUILD: Features = {
  context: taken('A folder of the repository.'),
  dockerfile: taken('A file of the context. Default: Dockerfile.'),
  dockerfile_inline: taken('The text of a Dockerfile.'),
  args: taken(
    'Build arguments; they end up in the image. One that a secret is put into stays empty: the log says how to mount it.',
  ),
  target: taken('The stage to build.'),
  entitlements: refused('It would give the build more rights.', off),
  privileged: refused('It would give the build more rights.', off),
  ssh: refused('Builds get no SSH agent.', off),
  secrets: refused('Set variables with the scope “build” at the app instead.', off),
  additional_contexts: refused('A build has one context.', off),
  extra_hosts: refused(HOST, off),
  network: refused('Builds run in the platform’s network.', oneOf('default', 'none', 'bridge')),
  labels: ignored(LABELS),
  cache_from: ignored(BUILDER),
  cache_to: ignored(BUILDER),
  no_cache: ignored(BUILDER),
  no_cache_filter: ignored(BUILDER),
  pull: ignored(BUILDER),
  tags: ignored(BUILDER),
  platforms: ignored(BUILDER),
  isolation: ignored(BUILDER),
  shm_size: ignored(BUILDER),
  ulimits: ignored(BUILDER),
  provenance: ignored(BUILDER),
  sbom: ignored(BUILDER),
}

const ROLLOUT =
  'The platform starts beside what runs, probes, switches and retires; what holds a volume is replaced stop-first.'
const DEPLOY: Features = {
  mode: refused(
    'Only `replicated` runs here; `global` is that on one server.',
    oneOf('replicated', 'global'),
  ),
  replicas: taken('Instances of the service.'),
  resources: taken('Limits and reservations.', {
    inside: {
      limits: taken('What one instance may use.', {
        inside: {
          cpus: taken('Cores.'),
          memory: taken('Memory; more than this ends the instance.'),
          pids: taken('Processes and threads, 4096 at most.'),
        },
      }),
      reservations: ignored('Limits only: nothing is reserved.', {
        inside: {
          cpus: ignored('Limits only: nothing is reserved.'),
          memory: ignored('Limits only: nothing is reserved.'),
          devices: refused('Devices of the host are not given to apps.', off),
          generic_resources: refused('Devices of the host are not given to apps.', off),
        },
      }),
    },
  }),
  update_config: ignored(ROLLOUT),
  rollback_config: ignored('A deployment that fails leaves what ran before.'),
  restart_policy: ignored('Instances that end are started again, with growing pauses.'),
  placement: ignored('The platform places instances.'),
  endpoint_mode: ignored('Names lead to all instances of a service.'),
  labels: ignored(LABELS),
}

const MOUNTED: Features = {
  source: taken('What is mounted.'),
  target: taken('Path in the container.'),
  mode: taken('Permissions of the file.'),
  uid: ignored('Files belong to root and may be read by all, unless `mode` says otherwise.'),
  gid: ignored('Files belong to root and may be read by all, unless `mode` says otherwise.'),
}

const VOLUME: Features = {
  type: taken('`volume`, `tmpfs`, or `bind` of a file of the repository.'),
  source: taken('A named volume, or a path of the repository.'),
  target: taken('Path in the container.'),
  read_only: taken('Nothing may be written to it.'),
  consistency: ignored('Without meaning on Linux.'),
  bind: ignored('Files of the repository are copied.'),
  volume: taken('Options of a volume.', {
    inside: {
      nocopy: ignored('A new volume begins with what the image has at its path.'),
      labels: ignored(LABELS),
      subpath: refused('A volume is mounted whole.', off),
    },
  }),
  tmpfs: taken('Options of a folder in memory.', {
    inside: { size: taken('Most that it may hold.'), mode: ignored('Everybody may write to it.') },
  }),
  image: refused('Images are not mounted.', off),
}

const PORT: Features = {
  target: taken('Port in the container.'),
  protocol: taken('`tcp` gets a domain.'),
  published: ignored('Requests come by a domain, not by a port of the server.'),
  host_ip: taken('A loopback address, or one of a private network, keeps the port private.'),
  mode: ignored('Requests come by a domain, not by a port of the server.'),
  name: ignored(GIVEN),
  app_protocol: ignored('The edge speaks HTTP with it.'),
}

const HEALTH: Features = {
  test: taken('A command inside the container; `NONE` turns it off.'),
  interval: taken('How long a deployment waits: `start_period`, then `retries` times this and `timeout`.'),
  timeout: taken('Time for one check.'),
  retries: taken('See `interval`.'),
  start_period: taken('See `interval`.'),
  start_interval: ignored('A deployment checks at least every second until the service is healthy.'),
  disable: taken('Turns the check of the image off.'),
}

const SERVICE: Features = {
  image: taken('The image to run.'),
  build: taken('Built from the repository.', { inside: BUILD }),
  command: taken('Replaces the image’s command.'),
  entrypoint: taken('Replaces the image’s entrypoint.'),
  environment: taken('Variables; a name without a value is taken from the app’s.'),
  env_file: taken('Files of the repository with variables.', {
    each: {
      path: taken('A file of the repository.'),
      required: taken('Whether it must be there.'),
      format: ignored('Files are read as dotenv.'),
    },
  }),
  depends_on: taken('Order of starts, with their conditions.', {
    each: {
      condition: taken('`service_started`, `service_healthy` or `service_completed_successfully`.'),
      required: taken('Whether it must be there.'),
      restart: ignored('A service that did not change is not touched.'),
    },
  }),
  healthcheck: taken('Decides when the service is ready.', { inside: HEALTH }),
  deploy: taken('Replicas and limits.', { inside: DEPLOY }),
  scale: taken('Instances of the service.'),
  volumes: taken('Named volumes, folders in memory and files of the repository.', { each: VOLUME }),
  tmpfs: taken('Folders in memory, but for those that files, configs or secrets of the service are in.'),
  configs: taken('Files from the top-level `configs`.', { each: MOUNTED }),
  secrets: taken('Files below `/run/secrets` from the top-level `secrets`.', { each: MOUNTED }),
  ports: taken('The first TCP port gets a domain.', { each: PORT }),
  expose: taken('Ports that other services use.'),
  networks: taken('Names of the service; all services of the app share one network.', {
    each: {
      aliases: taken('More names of the service.'),
      ipv4_address: ignored(GIVEN),
      ipv6_address: ignored(GIVEN),
      link_local_ips: ignored(GIVEN),
      mac_address: ignored(GIVEN),
      interface_name: ignored(GIVEN),
      driver_opts: ignored(GIVEN),
      priority: ignored(GIVEN),
      gw_priority: ignored(GIVEN),
    },
  }),
  links: taken('More names of the services that it links.'),
  container_name: taken('One more name of the service in the app’s network.'),
  hostname: taken('One more name of the service in the app’s network.'),
  profiles: taken('Runs when the variable `COMPOSE_PROFILES` of the app names one of them.'),
  user: taken('User inside the container.'),
  working_dir: taken('Folder in which the command runs.'),
  read_only: taken(
    'Nothing may be written outside of mounts; not at a service that has files, configs or secrets beside its volumes.',
  ),
  stop_grace_period: taken('Time between the stop signal and the end, at most 300 seconds.'),
  cpus: taken('Cores that one instance may use.'),
  mem_limit: taken('Memory that one instance may use.'),
  pids_limit: taken('Processes and threads that one instance may have, 4096 at most.'),
  ulimits: ignored('The engine’s limits hold; `pids_limit` is taken.'),
  restart: taken(
    '`no` at a service without ports and `healthcheck`: each deployment that changes it runs it to its end. Of all others, instances that end are started again, with growing pauses.',
  ),

  privileged: refused('Containers have no privileges.', off),
  cap_add: refused(`Containers have these capabilities alone: ${CAPABILITIES.join(', ')}.`, givenAnyway),
  security_opt: refused('Containers keep the engine’s confinement.', harmlessSecurity),
  devices: refused('Devices of the host are not given to apps.', off),
  device_cgroup_rules: refused('Devices of the host are not given to apps.', off),
  gpus: refused('Devices of the host are not given to apps.', off),
  network_mode: refused('All services of an app share one network of their own.', oneOf('bridge', 'default')),
  pid: refused(HOST, off),
  ipc: refused(HOST, oneOf('private', 'none', 'shareable')),
  uts: refused(HOST, off),
  userns_mode: refused(HOST, off),
  cgroup: refused(HOST, oneOf('private')),
  cgroup_parent: refused(HOST, off),
  volumes_from: refused('Name the volumes of each service.', off),
  external_links: refused(EXTERNAL, off),
  extra_hosts: refused(HOST, off),
  group_add: refused('Groups may be those of the host.', off),
  sysctls: refused('Settings of the kernel are those of the platform.', off),
  storage_opt: refused('Storage is decided by the platform.', off),
  runtime: refused('The platform decides what runs containers.', oneOf('runc')),
  oom_score_adj: refused('It would have other apps end first.', oneOf(0)),
  oom_kill_disable: refused('An instance beyond its memory ends.', off),
  credential_spec: refused('Accounts of Windows are not known here.', off),
  use_api_socket: refused('The engine is not given to apps.', off),
  extends: refused('Write the service out, or use a YAML anchor.', off),
  provider: refused('Programs of the host are not run for an app.', off),
  models: refused('No models are run.', off),
  post_start: refused('Commands at the start of instances are not run; use the entrypoint.', off),
  pre_stop: refused('Commands before the end of instances are not run; handle the stop signal.', off),

  annotations: ignored(LABELS),
  attach: ignored('Logs of every service are kept.'),
  blkio_config: ignored('Disks are shared evenly.'),
  cap_drop: ignored('All capabilities but a small fixed set are dropped anyway.'),
  cpu_count: ignored(CPU),
  cpu_percent: ignored(CPU),
  cpu_shares: ignored(CPU),
  cpu_quota: ignored(CPU),
  cpu_period: ignored(CPU),
  cpu_rt_period: ignored(CPU),
  cpu_rt_runtime: ignored(CPU),
  cpuset: ignored(CPU),
  develop: ignored('A tool for development.'),
  dns: ignored('The platform resolves names.'),
  dns_opt: ignored('The platform resolves names.'),
  dns_search: ignored('The platform resolves names.'),
  domainname: ignored(GIVEN),
  init: ignored('Every container has an init process.'),
  isolation: ignored('A setting of Windows.'),
  labels: ignored(LABELS),
  label_file: ignored(LABELS),
  logging: ignored('The platform keeps the logs, bounded.'),
  mac_address: ignored(GIVEN),
  mem_reservation: ignored('Limits only: nothing is reserved.'),
  mem_swappiness: ignored('Instances do not swap.'),
  memswap_limit: ignored('Instances do not swap.'),
  platform: ignored('Images run on the platform of the server.'),
  pull_policy: ignored(PULLED),
  pull_refresh_after: ignored(PULLED),
  shm_size: ignored('The engine’s own size holds.'),
  stdin_open: ignored('Services have no terminal.'),
  stop_signal: ignored('The signal of the image is sent.'),
  tty: ignored('Services have no terminal.'),
  'x-portreeve': taken('Which port is public, and its probe.', {
    inside: {
      public: taken('false keeps the service without a domain; true or a port gives it one.'),
      health_path: taken('Path that answers below 400 when the service is ready.'),
    },
  }),
}

/** Top level of the file. */
export const FEATURES: Features = {
  services: taken('What runs.', { each: SERVICE }),
  volumes: taken('Named volumes; each is a volume of the app.', {
    each: {
      ...named,
      ...external,
      driver: refused('Volumes are on the disk of the server.', oneOf('local')),
      driver_opts: refused('They could name a path of the host.', off),
    },
  }),
  networks: taken('All services of the app share one network.', {
    each: {
      ...named,
      external: ignored('The app has a network of its own, and that of its project.'),
      driver: refused('A network of the host is not given to apps.', oneOf('bridge', 'overlay', 'default')),
      driver_opts: ignored(GIVEN),
      ipam: ignored(GIVEN),
      internal: ignored('Services may connect out.'),
      enable_ipv4: ignored(GIVEN),
      enable_ipv6: ignored(GIVEN),
      attachable: ignored(GIVEN),
    },
  }),
  configs: taken('Files for services.', {
    each: {
      ...named,
      ...external,
      file: taken('A file of the repository.'),
      content: taken('The text itself, with variables.'),
      environment: taken('The value of a variable of the app.'),
      template_driver: refused('Only variables are replaced.', off),
    },
  }),
  secrets: taken('Files for services, sealed.', {
    each: {
      ...named,
      ...external,
      file: taken('A file of the repository.'),
      environment: taken('The value of a variable of the app.'),
      driver: refused('Secrets come from the app’s variables.', off),
      driver_opts: refused('Secrets come from the app’s variables.', off),
      template_driver: refused('Only variables are replaced.', off),
    },
  }),
  include: refused('One file describes an app.', off),
  models: refused('No models are run.', off),
  name: ignored(GIVEN),
  version: ignored('The newest form of the specification is read.'),
}

function givenAnyway(value: unknown): boolean {
  const given = (name: string) => CAPABILITIES.some((one) => one === name.toUpperCase().replace(/^CAP_/, ''))
  return off(value) || (Array.isArray(value) && value.every((name) => given(String(name))))
}

function harmlessSecurity(value: unknown): boolean {
  return (
    off(value) ||
    (Array.isArray(value) && value.every((item) => /^no-new-privileges([:=]true)?$/.test(String(item))))
  )
}
