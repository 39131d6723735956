/**
 * Every key that may occur in a body, by its path; `*` stands for any key. The list of security.md 2.9 and
 * nothing more.
 */
export const ALLOWED_KEYS = new Set([
  'Image',
  'Cmd',
  'Entrypoint',
  'Env',
  'Labels',
  'Labels.*',
  'StopTimeout',
  'HostConfig',
  'HostConfig.Memory',
  'HostConfig.MemorySwap',
  'HostConfig.NanoCpus',
  'HostConfig.PidsLimit',
  'HostConfig.RestartPolicy',
  'HostConfig.RestartPolicy.Name',
  'HostConfig.LogConfig',
  'HostConfig.LogConfig.Type',
  'HostConfig.LogConfig.Config',
  'HostConfig.LogConfig.Config.max-size',
  'HostConfig.LogConfig.Config.max-file',
  'HostConfig.CapDrop',
  'HostConfig.CapAdd',
  'HostConfig.SecurityOpt',
  'HostConfig.Init',
  'HostConfig.NetworkMode',
  'HostConfig.Mounts',
  'HostConfig.Mounts.Type',
  'HostConfig.Mounts.Source',
  'HostConfig.Mounts.Target',
  'HostConfig.Mounts.ReadOnly',
  'HostConfig.Mounts.VolumeOptions',
  'HostConfig.Mounts.VolumeOptions.NoCopy',
  'HostConfig.PortBindings',
  'HostConfig.PortBindings.*',
  'HostConfig.PortBindings.*.HostPort',
  'ExposedPorts',
  'ExposedPorts.*',
  'Healthcheck',
  'Healthcheck.Test',
  'AttachStdin',
  'AttachStdout',
  'AttachStderr',
  'Tty',
  'Detach',
  'User',
  'WorkingDir',
  'HostConfig.Tmpfs',
  'HostConfig.Tmpfs.*',
  'HostConfig.ReadonlyRootfs',
  'Container',
  'NetworkingConfig',
  'NetworkingConfig.EndpointsConfig',
  'NetworkingConfig.EndpointsConfig.*',
  'NetworkingConfig.EndpointsConfig.*.Aliases',
  'NetworkingConfig.EndpointsConfig.*.IPAMConfig',
  'NetworkingConfig.EndpointsConfig.*.IPAMConfig.IPv4Address',
  'RestartPolicy',
  'RestartPolicy.Name',
  'Name',
  'CheckDuplicate',
  'Driver',
  'IPAM',
  'IPAM.Driver',
  'IPAM.Config',
  'IPAM.Config.Subnet',
  'IPAM.Config.IPRange',
  'IPAM.Config.Gateway',
])
const FREE = new Set([
  'Labels',
  'NetworkingConfig.EndpointsConfig',
  'HostConfig.PortBindings',
  'HostConfig.Tmpfs',
  'ExposedPorts',
])
/** Paths of all keys in a body, arrays seen through, keys of free maps as `*`. */
export function keysOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => keysOf(item, path))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const own = `${path === '' ? '' : `${path}.`}${FREE.has(path) ? '*' : key}`
    return [own, ...keysOf(inner, own)]
  })
}
