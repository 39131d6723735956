import { Duplex } from 'node:stream'
import type { TerminalProcess, TerminalSize, TerminalSpec } from '../workload.ts'

/**
 * Pretends to be a shell: shows what is typed, says its size when it changes, floods on `flood`, takes nothing
 * more on `stall`, and ends on `exit <code>`.
 */
export function createFakeTerminals() {
  const open = new Map<string, (code: number) => void>()
  return {
    open(instance_id: string, spec: TerminalSpec): TerminalProcess {
      let finish: (code: number) => void = () => {}
      const done = new Promise<number | undefined>((resolve) => {
        finish = resolve
      })
      let flooding = 0
      const stream: Duplex = new Duplex({
        read() {
          if (flooding-- > 0) this.push('x'.repeat(16_384))
        },
        write(chunk: Buffer, _encoding, taken) {
          const text = chunk.toString()
          stream.push(text.replaceAll('\n', '\r\n'))
          if (text.startsWith('flood')) flooding = 64
          const code = /^exit (\d+)/.exec(text)?.[1]
          if (code !== undefined) end(Number(code))
          if (!text.startsWith('stall')) taken()
        },
      })
      const end = (code: number) => {
        open.delete(spec.session)
        stream.push(null)
        stream.once('end', () => finish(code))
        stream.once('close', () => finish(code))
      }
      open.set(spec.session, end)
      stream.on('error', () => {})
      stream.push(`${instance_id.slice(0, 12)} ${spec.cols}x${spec.rows}$ `)
      return {
        stream,
        async resize({ cols, rows }: TerminalSize) {
          stream.push(`${cols}x${rows}\r\n`)
        },
        done,
      }
    },
    hangUp: (session: string) => open.get(session)?.(129),
  }
}
