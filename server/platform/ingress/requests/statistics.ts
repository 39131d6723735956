/** A row of the edge's counters by column name. */
export type StatisticsRow = Readonly<Record<string, string>>

/** Reads the CSV of `show stat`; columns are found by name, because versions add some. */
export function parseStatistics(csv: string): StatisticsRow[] {
  const lines = csv.split('\n')
  const header = lines.find((line) => line.startsWith('# '))
  if (!header) return []
  const names = header.slice(2).split(',')
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const values = line.split(',')
      return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']))
    })
}

/** A server as the running edge knows it. */
export interface RunningServer {
  backend: string
  name: string
  address: string
  port: number
  /** True while new requests may go to it. */
  enabled: boolean
}

/** Forced maintenance, of all the reasons that take a server out of the rotation, is the one that we set. */
const ADMIN_MAINTENANCE = 0x01

/** Reads `show servers state`, one backend's or all. */
export function parseServers(text: string): RunningServer[] {
  const lines = text.split('\n')
  const header = lines.find((line) => line.startsWith('# be_id'))
  if (!header) return []
  const names = header.slice(2).split(' ')
  const column = (name: string) => names.indexOf(name)
  const [backend, name, address, port, state] = [
    column('be_name'),
    column('srv_name'),
    column('srv_addr'),
    column('srv_port'),
    column('srv_admin_state'),
  ]
  return lines
    .filter((line) => /^\d+ \S/.test(line))
    .map((line) => {
      const values = line.split(' ')
      return {
        backend: values[backend] ?? '',
        name: values[name] ?? '',
        address: values[address] ?? '',
        port: Number(values[port]),
        enabled: (Number(values[state]) & ADMIN_MAINTENANCE) === 0,
      }
    })
}

/** Reads `show map`: key to value. */
export function parseMap(text: string): Map<string, string> {
  const entries = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, key, value] = /^0x[0-9a-f]+ (\S+) (.*)$/.exec(line) ?? []
    if (key !== undefined && value !== undefined) entries.set(key, value)
  }
  return entries
}
