import { Fatal } from '#server/kernel/jobs/definition'
import { own } from '#server/kernel/own'
import { classify } from './classify.ts'
import type { DeployContext, DeployStep } from './work.ts'

/** What began is not begun again for a fault of the engine: nobody knows how far it came. */
function final(error: unknown): Fatal {
  if (error instanceof Fatal) return error
  const { code, message, hint, log } = classify(error)
  return new Fatal(code, message, hint, log, { cause: error })
}

/**
 * Runs a command of a deployment that may change data, such as a migration: it begins once, whatever becomes of the
 * engine or of Portreeve meanwhile. Only another deployment, which somebody asks for, begins it again.
 * @param what it is called, and what it is called in a sentence.
 */
export async function begunOnce(
  context: DeployContext,
  step: DeployStep,
  what: { purpose: string; words: string },
  run: (onStarted: () => void) => Promise<void>,
): Promise<void> {
  const { state } = step
  const { purpose, words } = what
  const note = (how: 'begun' | 'done') => {
    state.commands = { ...state.commands, [purpose]: how }
    step.save()
  }
  const before = own(state.commands ?? {}, purpose)
  if (before === 'done') return
  if (before === 'begun') {
    // What Portreeve left running would go on beside the next deployment, and nobody would hear how it ends.
    await context.engine.removeLabelled({ release: state.release_id, run: purpose })
    throw new Fatal(
      'interrupted',
      `Portreeve ended while ${words} ran, and nobody knows how far that came, so it was not begun again.`,
      'Look at the data that it changes, then deploy again: that runs it once more. The previous release serves on.',
    )
  }
  let is_begun = false
  try {
    await run(() => {
      is_begun = true
      note('begun')
    })
  } catch (error) {
    throw is_begun && !step.signal.aborted ? final(error) : error
  }
  note('done')
}
