import { createMachine } from '#server/kernel/machine'

export type SleepState = 'awake' | 'asleep' | 'waking'
export type SleepEvent = 'sleep' | 'request' | 'wake'

/**
 * Whether an app has instances. `request`: somebody asks for it, `wake`: an instance is ready, or whoever waited
 * is told that there will be none.
 */
export const sleepMachine = createMachine<SleepState, SleepEvent>('an app', {
  awake: { sleep: 'asleep', wake: 'awake' },
  asleep: { sleep: 'asleep', request: 'waking', wake: 'awake' },
  waking: { sleep: 'asleep', request: 'waking', wake: 'awake' },
})
