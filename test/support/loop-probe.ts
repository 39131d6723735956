/**
 * Loaded beside the built server by tests (`node --import`): watches whether its main thread comes to answer,
 * and keeps a file of what it saw. With `LOOP_PROBE_PROFILE=1` it also tells the place of the code that took
 * its time: a sampling profiler runs along. Not by default, since reading a long profile is a stall of its own.
 */
import { subscribe } from 'node:diagnostics_channel'
import { renameSync, writeFileSync } from 'node:fs'
import { type Profiler, Session } from 'node:inspector'
import { createHistogram } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'
import type { Stall } from '#server/kernel/stalls'
import { type LoopReport, ownWork, type SeenStall } from './loop-report.ts'

const FILE = process.env.LOOP_PROBE_FILE
const HAS_PROFILER = process.env.LOOP_PROBE_PROFILE === '1'
/** Each look wakes the server: a hundred a second took more than all that an idle one does. */
const RESOLUTION_MS = 25
const SAMPLE_US = 10_000
const WRITE_MS = 2_000
/** Samples are thrown away after this, unless a stall asked for them. */
const TURN_MS = 15_000
/** Stalls that are looked up in the profile; the others are counted. */
const LOOKED_UP_MS = 50
const FRAMES = 6

/** What the profile saw most within a time, the innermost function first. */
function hottest(profile: Profiler.Profile, from_us: number): string[] {
  const parents = new Map<number, number>()
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  for (const node of profile.nodes) for (const child of node.children ?? []) parents.set(child, node.id)
  const counts = new Map<number, number>()
  let at = profile.startTime
  for (const [index, delta] of (profile.timeDeltas ?? []).entries()) {
    at += delta
    const id = profile.samples![index]!
    if (at >= from_us && !/^\((idle|program)\)$/.test(nodes.get(id)!.callFrame.functionName))
      counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  const [top] = [...counts].sort(([, a], [, b]) => b - a)
  const frames: string[] = []
  for (let id = top?.[0]; id !== undefined && frames.length < FRAMES; id = parents.get(id)) {
    const { functionName, url, lineNumber } = nodes.get(id)!.callFrame
    if (functionName !== '(root)')
      frames.push(`${functionName || 'anonymous'} ${url.split('/').slice(-2).join('/')}:${lineNumber + 1}`)
  }
  return frames
}

/** Answers a function that hands over what was sampled since the last time. */
function startProfiler(): (take?: (profile: Profiler.Profile) => void) => void {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US })
  session.post('Profiler.start')
  return (take) =>
    session.post('Profiler.stop', (_, found) => {
      if (found) take?.(found.profile)
      session.post('Profiler.start')
    })
}

/**
 * Measures how late a timer comes because the thread itself worked. The time in which the machine ran other
 * programs does not count. A long delay is counted once for each moment at which somebody may have come.
 */
function measureDelay() {
  const own_us = createHistogram()
  const worked = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  let [last, last_worked] = [performance.now(), worked()]
  setInterval(() => {
    const [at, work] = [performance.now(), worked()]
    const own_ms = Math.min(at - last - RESOLUTION_MS, work - last_worked)
    for (let waits_ms = own_ms; ; waits_ms -= RESOLUTION_MS) {
      own_us.record(Math.max(1, Math.round(waits_ms * 1000)))
      if (waits_ms < RESOLUTION_MS) break
    }
    last = at
    last_worked = work
  }, RESOLUTION_MS).unref()
  return own_us
}

function watch(file: string): void {
  const delay = measureDelay()
  const stalls: SeenStall[] = []
  const turn = HAS_PROFILER ? startProfiler() : undefined
  const ms = (us: number) => Math.round(us / 100) / 10
  const write = () => {
    const report: LoopReport = {
      p99_ms: ms(delay.percentile(99)),
      max_ms: ms(delay.max),
      ticks: delay.count,
      stalls: [...stalls].sort((a, b) => ownWork(b) - ownWork(a)).slice(0, 20),
    }
    writeFileSync(`${file}.new`, JSON.stringify(report))
    renameSync(`${file}.new`, file)
  }
  subscribe('portreeve:stall', (message) => {
    const stall = message as Stall
    const seen: SeenStall = { ...stall, frames: [] }
    stalls.push(seen)
    if (stall.worked_ms < LOOKED_UP_MS) return
    turn?.((profile) => {
      seen.frames = hottest(profile, profile.endTime - (stall.stalled_ms + 100) * 1000)
    })
  })
  // What a start loads is no stall of anybody: the test says when it is over.
  process.once('SIGUSR2', () => {
    stalls.length = 0
    delay.reset()
  })
  setInterval(write, WRITE_MS).unref()
  if (turn) setInterval(() => turn(), TURN_MS).unref()
  process.once('exit', write)
}

// Threads of the server load this too; what they do keeps nobody waiting.
if (FILE !== undefined && isMainThread) watch(FILE)
