import type { DatabaseEngine } from '../engine.ts'
import { redisFamily } from './redis-family.ts'

export const valkey = {
  name: 'valkey',
  label: 'Valkey',
  image: 'valkey/valkey',
  lines: ['8', '9', '7'],
  ...redisFamily('valkey'),
} satisfies DatabaseEngine
