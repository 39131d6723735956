import { conflict } from './errors.ts'

/** For each state, the events that it accepts and the state that each leads to. */
export type Transitions<S extends string, E extends string> = Record<S, Partial<Record<E, S>>>

export interface Machine<S extends string, E extends string> {
  readonly transitions: Transitions<S, E>
  /** The state after `event`; an impossible event is a 409 with a sentence. */
  next(state: S, event: E): S
  /** Whether `state` accepts `event`. */
  accepts(state: S, event: E): boolean
}

/**
 * A state machine that is a table.
 * @param noun with its article, for the sentence: `an app`.
 */
export function createMachine<S extends string, E extends string>(
  noun: string,
  transitions: Transitions<S, E>,
): Machine<S, E> {
  return {
    transitions,
    accepts: (state, event) => transitions[state][event] !== undefined,
    next(state, event) {
      const target = transitions[state][event]
      if (target === undefined)
        throw conflict(`Cannot ${event.replaceAll('_', ' ')} ${noun} while it is ${state}.`)
      return target
    },
  }
}
