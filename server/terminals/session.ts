import { StringDecoder } from 'node:string_decoder'
import type { ChannelSession, SessionEnd, SessionInput, SessionOutlet } from '#server/kernel/channels'
import type { Clock } from '#server/kernel/clock'
import { ApiError, conflict } from '#server/kernel/errors'
import type { TerminalProcess, TerminalSize } from '#server/platform/engine/workload'
import { HELD_CHARS, MAX_UNTAKEN_BYTES, MESSAGE_CHARS } from './limits.ts'
import type { TerminalEnd } from './schema.ts'

export interface TerminalSession extends ChannelSession {
  /** The shell is there: what was typed in the meantime goes to it. */
  begin(terminal: TerminalProcess): void
  /** Ends with a last message, after what was shown before. */
  finish(reason: TerminalEnd, exit_code: number | null): void
  /** Ends with an error in place of a shell. */
  fail(error: ApiError): void
  readonly size: TerminalSize
  /** When something was typed last, in monotonic milliseconds. */
  readonly typed_ms: number
  readonly has_ended: boolean
}

/**
 * Carries bytes between a shell and a connection. Neither side can flood the other: what the connection does
 * not take holds the program, and what the program does not take is refused after a bound.
 * @param onEnd hears once of the end, whichever side it came from.
 */
export function createTerminalSession(
  clock: Pick<Clock, 'monotonic_ms'>,
  first_size: TerminalSize,
  outlet: SessionOutlet,
  onEnd: (reason: TerminalEnd, exit_code: number | null) => void,
): TerminalSession {
  const decoder = new StringDecoder('utf8')
  let terminal: TerminalProcess | undefined
  let size = first_size
  /** What the shell was told. */
  let applied = first_size
  let is_resizing = false
  let shown = ''
  let typed_early = ''
  let typed_ms = clock.monotonic_ms()
  let taken = 0
  let told_taken = 0
  let last: { type: string; data: unknown } | undefined
  let has_ended = false

  const end = (reason: TerminalEnd, exit_code: number | null) => {
    if (has_ended) return
    has_ended = true
    terminal?.stream.destroy()
    onEnd(reason, exit_code)
  }
  const type = (text: string) => {
    if (!terminal) {
      if (typed_early.length + text.length > MAX_UNTAKEN_BYTES)
        throw conflict('The terminal is not open yet.')
      typed_early += text
      return
    }
    const { stream } = terminal
    if (stream.writableLength > MAX_UNTAKEN_BYTES)
      throw new ApiError('RATE_LIMITED', 'The program does not take what was typed. Wait for `input_taken`.')
    stream.write(text, () => {
      taken += text.length
      outlet.due()
    })
  }
  /** One call to the engine at a time, however quickly a window changes: of sizes that wait the newest counts. */
  const resize = async (desired: TerminalSize) => {
    size = desired
    if (!terminal || is_resizing) return
    is_resizing = true
    while (!has_ended && (size.cols !== applied.cols || size.rows !== applied.rows)) {
      applied = size
      // The shell may have ended in the meantime, which its stream tells.
      await terminal.resize(applied).catch(() => {})
    }
    is_resizing = false
  }

  return {
    get size() {
      return size
    },
    get typed_ms() {
      return typed_ms
    },
    get has_ended() {
      return has_ended
    },
    begin(opened) {
      terminal = opened
      if (has_ended) return void opened.stream.destroy()
      const { stream } = opened
      stream.on('data', (chunk: Buffer) => {
        shown += decoder.write(chunk)
        if (shown.length >= HELD_CHARS) stream.pause()
        outlet.due()
      })
      if (typed_early) type(typed_early)
      typed_early = ''
      void resize(size)
    },
    finish(reason, exit_code) {
      last ??= { type: 'exit', data: { reason, exit_code } }
      end(reason, exit_code)
      outlet.due()
    },
    fail({ code, message }) {
      last ??= { type: 'error', data: { code, message } }
      end('failed', null)
      outlet.due()
    },
    receive(input: SessionInput) {
      typed_ms = clock.monotonic_ms()
      if (has_ended) throw conflict('The terminal has ended.')
      if (input.type === 'input') type(input.text)
      else void resize({ cols: input.cols, rows: input.rows })
    },
    step() {
      while (shown) {
        const part = shown.slice(0, MESSAGE_CHARS)
        if (!outlet.send({ type: 'output', data: { text: part } })) return 'blocked'
        shown = shown.slice(part.length)
      }
      if (told_taken !== taken && !has_ended) {
        if (!outlet.send({ type: 'input_taken', data: { chars: taken } })) return 'blocked'
        told_taken = taken
      }
      if (last) outlet.finish(last)
      else terminal?.stream.resume()
      return 'done'
    },
    end: (reason: SessionEnd) => end(reason, null),
  }
}
