import { placesOfOne, type Tenants } from './tenants.ts'

/** Limits how many steps of one kind run at once; projects take turns. */
export interface Pool {
  /**
   * Waits for a place; rejects with the signal's reason when it aborts. Call the result to give the place
   * back.
   * @param project Whose work it is; null for the platform's own.
   */
  acquire(signal: AbortSignal, project: string | null): Promise<() => void>
  readonly waiting: number
  /** Changes how many may run at once: those that run go on, and as many fewer or more enter from then on. */
  resize(size: number): void
}

/** The places of one project, and those of it that wait for one, longest first. */
interface Line {
  held: number
  /** When it last got a place, as a number that only grows. */
  served: number
  waiting: { came: number; enter(): void }[]
}

/**
 * The next place goes to the project that holds the fewest, of those to the one that got its last place
 * longest ago, and of those to whoever waited longest. While other projects do work too, none of them holds
 * the last places: what it runs may take a day.
 */
export function createPool(initial: number, tenants: Pick<Tenants, 'others'>): Pool {
  let size = initial
  let free = initial
  let now = 0
  const lines = new Map<string | null, Line>()
  const lineOf = (project: string | null): Line => {
    const line = lines.get(project) ?? { held: 0, served: 0, waiting: [] }
    lines.set(project, line)
    return line
  }
  const mayEnter = (project: string | null, { held }: Line) =>
    free > 0 && (project === null || held < placesOfOne(size) || !tenants.others(project))
  const take = (line: Line) => {
    free -= 1
    line.held += 1
    line.served = now += 1
  }
  const order = (one: Line, other: Line) =>
    one.held - other.held || one.served - other.served || one.waiting[0]!.came - other.waiting[0]!.came
  const next = (): Line | undefined => {
    let best: Line | undefined
    for (const [project, line] of lines) {
      if (line.waiting.length === 0 || !mayEnter(project, line)) continue
      if (!best || order(line, best) < 0) best = line
    }
    return best
  }
  /** Lets those in who wait, as far as there are places; below zero, more run than now may. */
  const admit = () => {
    for (let line = next(); line; line = next()) {
      take(line)
      line.waiting.shift()!.enter()
    }
  }
  const place = (line: Line) => {
    let held = true
    return () => {
      if (!held) return
      held = false
      free += 1
      line.held -= 1
      admit()
    }
  }
  return {
    get waiting() {
      return [...lines.values()].reduce((sum, { waiting }) => sum + waiting.length, 0)
    },
    resize(desired) {
      free += desired - size
      size = desired
      admit()
    },
    async acquire(signal, project) {
      signal.throwIfAborted()
      const line = lineOf(project)
      // Who waits in the same line came before; in another one it could not enter.
      if (line.waiting.length === 0 && mayEnter(project, line)) {
        take(line)
        return place(line)
      }
      return new Promise((resolve, reject) => {
        const entry = {
          came: (now += 1),
          enter() {
            signal.removeEventListener('abort', giveUp)
            resolve(place(line))
          },
        }
        const giveUp = () => {
          line.waiting.splice(line.waiting.indexOf(entry), 1)
          reject(signal.reason as Error)
        }
        line.waiting.push(entry)
        signal.addEventListener('abort', giveUp, { once: true })
      })
    },
  }
}

/** Does some work in a place of a project, once there is one; rejects when the signal aborts before that. */
export async function inPlace<T>(
  pool: Pick<Pool, 'acquire'>,
  project: string,
  work: () => Promise<T>,
  signal = new AbortController().signal,
): Promise<T> {
  const leave = await pool.acquire(signal, project)
  try {
    return await work()
  } finally {
    leave()
  }
}
