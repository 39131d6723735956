import { onScopeDispose, type MaybeRefOrGetter, toValue, watch } from 'vue'
import { type Frame, listen, onReopened, onShut } from './live.ts'
import { refresh } from './queries.ts'
import type { Me } from './session.ts'

/** Events of one moment are answered by one round of questions. */
const TOGETHER_MS = 150
/** How long a round may hold up the next one: a question that is asked anew gives up the answer before. */
const PATIENCE_MS = 5000

let due = new Set<string>()
let gathering = false
const wait = (ms: number) => new Promise<void>((done) => setTimeout(done, ms))

/** One round at a time: of events that come faster than they are answered, nobody would see any answer. */
async function ask(): Promise<void> {
  gathering = true
  while (due.size > 0) {
    await wait(TOGETHER_MS)
    const nouns = [...due]
    due = new Set()
    await Promise.race([refresh(nouns), wait(PATIENCE_MS)])
  }
  gathering = false
}

function gather({ type }: Frame): void {
  const [noun, what] = type.split('.')
  if (!noun || what === undefined) return
  due.add(noun)
  if (!gathering) void ask()
}

/**
 * Keeps every list and page up to date with what the user may see. Returns what ends it.
 * @param reread hears that what the user is or may has changed, or may have while nobody followed.
 * @param look hears that the session may have ended.
 */
export function followEverything(me: Me, reread: () => void, look: () => void): () => void {
  const ends = [me.role === 'admin' ? 'system' : 'projects', 'account'].map((name) => listen(name, gather))
  ends.push(
    listen('account', ({ type }) => {
      if (type.startsWith('member.') || type.startsWith('project.')) reread()
    }),
  )
  // What was missed may be more than the server keeps.
  ends.push(onReopened(reread), onShut(look))
  return () => ends.forEach((end) => end())
}

/** Listens to one channel for as long as a component is shown. */
export function useChannel(
  name: MaybeRefOrGetter<string | undefined>,
  listener: (frame: Frame) => void,
  after?: () => string | undefined,
): void {
  let end: (() => void) | undefined
  watch(
    () => toValue(name),
    (channel) => {
      end?.()
      end = channel ? listen(channel, listener, after?.()) : undefined
    },
    { immediate: true },
  )
  onScopeDispose(() => end?.())
}
