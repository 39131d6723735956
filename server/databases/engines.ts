import type { DatabaseEngine } from './engine.ts'
import { clickhouse } from './engines/clickhouse.ts'
import { mariadb } from './engines/mariadb.ts'
import { mongodb } from './engines/mongodb.ts'
import { mysql } from './engines/mysql.ts'
import { postgres } from './engines/postgres.ts'
import { redis } from './engines/redis.ts'
import { valkey } from './engines/valkey.ts'

/** Every engine there is, in the order in which they are shown. */
export const ENGINES = [
  postgres,
  mysql,
  mariadb,
  mongodb,
  redis,
  valkey,
  clickhouse,
] as const satisfies readonly DatabaseEngine[]
export type EngineName = (typeof ENGINES)[number]['name']
export const ENGINE_NAMES = ENGINES.map(({ name }) => name) as [EngineName, ...EngineName[]]

export const engineOf = (name: EngineName): DatabaseEngine => ENGINES.find((engine) => engine.name === name)!
