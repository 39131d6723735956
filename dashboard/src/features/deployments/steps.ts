const WORDS: Record<string, string> = {
  clone: 'Clone',
  detect: 'Detect',
  build: 'Build',
  release: 'Release',
  start: 'Start',
  verify: 'Verify',
  switch: 'Switch',
  soak: 'Soak',
  retire: 'Retire',
}
/** A step as a person reads it. */
export const wordOf = (name: string): string => WORDS[name] ?? name
