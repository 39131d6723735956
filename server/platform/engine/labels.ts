import type { Labels } from './engine.ts'

const PREFIX = 'portreeve.'
/** Every object that Portreeve makes carries this, so that it never touches anything else. */
export const MANAGED = `${PREFIX}managed`

/** Labels as the engine stores them, below our prefix. */
export function storedLabels(labels: Labels): Record<string, string> {
  return { [MANAGED]: 'true', ...Object.fromEntries(Object.entries(labels).map(([key, value]) => [PREFIX + key, value])) }
}

/** A filter for objects of ours that carry all of these labels. */
export const labelFilter = (labels: Labels): string[] => Object.entries(storedLabels(labels)).map(([key, value]) => `${key}=${value}`)

/** One label of ours from what the engine stores. */
export const ownLabel = (stored: Record<string, string> | null | undefined, key: string): string | undefined => stored?.[PREFIX + key]

export const isManaged = (stored: Record<string, string> | null | undefined): boolean => stored?.[MANAGED] === 'true'
