import { EngineError } from '../engine.ts'
import { filledTheDisk } from '../disk-room.ts'

export interface LayerGuardOptions {
  /** Undefined for no limit. */
  limit_bytes: number | undefined
  /** Bytes that the container wrote beside its volumes; walks its files. */
  measure(): Promise<number | undefined>
  /** Whether nothing is left of the disk but what is kept for Portreeve. */
  isDiskFull(): Promise<boolean>
  /** Called once: the command is to be ended. */
  onExcess(reason: EngineError): void
}

const LOOK_MS = 500
/** Most commands end before anything of them is walked. */
const FIRST_MS = 15_000
/** Of the time, a hundredth is spent on walking. */
const SHARE_OF_TIME = 100
/** On a full disk, what wrote less than this is not what filled it: a sixteenth of the reserve. */
const WORTH_BYTES = 64 * 1024 ** 2

const shown = (bytes: number) => `${Math.ceil(bytes / 1024 ** 2)} MiB`

/** Watches what one command writes into its own container, as instances are watched for as long as they run. */
export function guardLayer({ limit_bytes, measure, isDiskFull, onExcess }: LayerGuardOptions) {
  let due_ms = performance.now() + FIRST_MS
  let is_looking = false

  async function excess(): Promise<EngineError | undefined> {
    const is_full = await isDiskFull()
    const began = performance.now()
    if (!is_full && (limit_bytes === undefined || began < due_ms)) return undefined
    const bytes = (await measure()) ?? 0
    const now = performance.now()
    due_ms = now + Math.max(FIRST_MS, (now - began) * SHARE_OF_TIME)
    if (limit_bytes !== undefined && bytes > limit_bytes)
      return new EngineError(
        'disk_exceeded',
        `The command wrote ${shown(bytes)} into its container, and ${shown(limit_bytes)} is the most, so it was ended.`,
        'Write to a volume what is to be kept, and remove what is not.',
      )
    return is_full && bytes > WORTH_BYTES ? filledTheDisk('The command') : undefined
  }
  async function look(): Promise<void> {
    if (is_looking) return
    is_looking = true
    // What cannot be measured now is measured the next time.
    const found = await excess().catch(() => undefined)
    is_looking = false
    if (!found || stopped) return
    stop()
    onExcess(found)
  }
  const timer = setInterval(() => void look(), LOOK_MS)
  let stopped = false
  function stop(): void {
    stopped = true
    clearInterval(timer)
  }
  return { stop }
}
