/** The colour of a state: what is well, under way, worth a look, broken, at rest. */
export type Tone = 'good' | 'info' | 'warn' | 'bad' | 'idle'
export type Shape = 'check' | 'spin' | 'clock' | 'alert' | 'cross' | 'pause' | 'minus'

interface Look {
  tone: Tone
  shape: Shape
  word?: string
}

const GOOD: Look = { tone: 'good', shape: 'check' }
const BUSY: Look = { tone: 'info', shape: 'spin' }
const WAITS: Look = { tone: 'idle', shape: 'clock' }
const BROKEN: Look = { tone: 'bad', shape: 'cross' }
const RESTS: Look = { tone: 'idle', shape: 'minus' }

const LOOKS: Record<string, Look> = {
  ...all(
    GOOD,
    'running live active verified succeeded healthy enabled ok online ready connected up resolved steady',
  ),
  ...all(
    BUSY,
    'building starting releasing issuing scaling waking stopping deleting removing undoing creating restoring restarting upgrading joining',
  ),
  ...all(WAITS, 'queued pending scheduled invited unknown waiting created'),
  ...all(
    BROKEN,
    'failed crashed expired revoked unhealthy offline error unreachable failing firing down missing timed_out dead',
  ),
  ...all(RESTS, 'cancelled superseded replaced skipped not_reached disabled ignored off silenced exited'),
  stopped: { tone: 'idle', shape: 'pause' },
  asleep: { tone: 'idle', shape: 'pause' },
  paused: { tone: 'idle', shape: 'pause' },
  degraded: { tone: 'warn', shape: 'alert' },
  missed: { tone: 'warn', shape: 'alert' },
  expiring: { tone: 'warn', shape: 'alert', word: 'Expires soon' },
  drained: { tone: 'warn', shape: 'pause' },
}
function all(look: Look, names: string): Record<string, Look> {
  return Object.fromEntries(names.split(' ').map((name) => [name, look]))
}

/** How a state is shown: always a colour, a sign and a word together. */
export function lookOf(status: string): Required<Look> {
  const look = LOOKS[status] ?? { tone: 'idle' as const, shape: 'minus' as const }
  const word = status.replaceAll('_', ' ')
  return { word: word.charAt(0).toUpperCase() + word.slice(1), ...look }
}
/** The same for steps and jobs that are at work: `running` is under way there, not well. */
export const lookOfWork = (status: string): Required<Look> =>
  status === 'running' ? { ...BUSY, word: 'Running' } : lookOf(status)
