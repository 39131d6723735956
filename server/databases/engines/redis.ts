import type { DatabaseEngine } from '../engine.ts'
import { redisFamily } from './redis-family.ts'

export const redis = {
  name: 'redis',
  label: 'Redis',
  image: 'redis',
  lines: ['8', '7'],
  ...redisFamily('redis'),
} satisfies DatabaseEngine
