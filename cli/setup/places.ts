import { join, resolve } from 'node:path'
import type { Places } from './service.ts'

/** Where what belongs to an installation lies. */
export function placesOf({ dataDir }: { dataDir: string }): Places {
  const data = resolve(dataDir)
  return {
    data,
    program: join(data, 'program/portreeve'),
    settings: join(data, 'portreeve.env'),
    cache: join(data, 'program/unpacked'),
  }
}
