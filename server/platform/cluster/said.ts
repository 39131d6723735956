import type { EngineEvent, Instance, InstanceStats } from '#server/platform/engine/engine'
import { isOfProject, MOST_ELSEWHERE, type NetworkInfo, subnetsOf } from '#server/platform/engine/networks'
import { formatAddress, overlaps, type Range } from '#server/platform/engine/subnets'

/**
 * What the engine of a member says comes from another machine, which somebody may have taken over. What has another
 * shape than an engine gives it would be a fault of this server wherever it is shown, stored or added.
 */
const LONGEST_TEXT = 200
/** More than any machine has of anything, and still a whole number. */
const MOST = 2 ** 50
/** More than any machine runs. */
const MOST_INSTANCES = 2_000

const isText = (value: unknown): boolean => typeof value === 'string' && value.length <= LONGEST_TEXT
const isAmount = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= MOST
const isCount = (value: unknown): boolean => isAmount(value) && Number.isInteger(value)
const isTime = (value: unknown): boolean => isText(value) && !Number.isNaN(Date.parse(value as string))
const isLeftOut = (value: unknown): boolean => value === undefined

const isInstance = (said: Instance): boolean =>
  [said.id, said.image, said.owner.id, said.release_id, said.project_id, said.process].every(isText) &&
  [said.index, said.restart_count].every(isCount) &&
  typeof said.oom_killed === 'boolean' &&
  (!said.limits || (isAmount(said.limits.cpus) && isCount(said.limits.memory_bytes))) &&
  (isLeftOut(said.exit_code) || Number.isInteger(said.exit_code)) &&
  [said.started_at, said.finished_at].every((at) => isLeftOut(at) || isTime(at)) &&
  (isLeftOut(said.address) || isText(said.address))

/** Of what is said to run, what can. */
export const instancesSaid = (said: readonly Instance[]): Instance[] =>
  said.filter(isInstance).slice(0, MOST_INSTANCES)

/**
 * Where networks of projects on a member are: never where one is elsewhere. Previews are not placed there, and whoever
 * says that it has all networks would leave this server none for the next project.
 */
export const subnetsSaid = (networks: readonly NetworkInfo[], taken: readonly Range[]): string[] =>
  [
    ...new Set(
      networks
        .flatMap(subnetsOf)
        .filter((range) => isOfProject(range) && !taken.some((other) => overlaps(range, other)))
        .map(({ first, prefix }) => `${formatAddress(first)}/${prefix}`),
    ),
  ]
    .slice(0, MOST_ELSEWHERE)
    .sort()

export const isEventSaid = ({ instance_id, at, exit_code }: EngineEvent): boolean =>
  isText(instance_id) && isTime(at) && (isLeftOut(exit_code) || Number.isInteger(exit_code))

/** What was measured; undefined for what nobody can measure. */
export const statsSaid = (said: InstanceStats | undefined): InstanceStats | undefined =>
  said &&
  isTime(said.at) &&
  [said.cpu_cores].every(isAmount) &&
  [said.memory_bytes, said.network_rx_bytes, said.network_tx_bytes].every(isCount)
    ? said
    : undefined
