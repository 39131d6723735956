import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { placesOf } from './places.ts'
import { readSettings } from './settings-file.ts'

/**
 * Lets the program of an installation know where that is and with which settings its server runs, so that
 * whoever types `portreeve doctor` need not repeat what they said to `portreeve setup`. What the environment says
 * goes first; one that names another data directory is about another installation.
 */
export function adoptSettings(env: Record<string, string | undefined>, program: string): void {
  const places = placesOf({ dataDir: dirname(dirname(program)) })
  if (places.program !== program || !existsSync(places.settings)) return
  if (env.PORTREEVE_DATA_DIR && resolve(env.PORTREEVE_DATA_DIR) !== places.data) return
  const kept = { ...readSettings(places.settings), PORTREEVE_DATA_DIR: places.data }
  for (const [name, value] of Object.entries(kept)) env[name] ??= value
}
