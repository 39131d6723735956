import { stripVTControlCharacters, styleText } from 'node:util'
import { own } from '#server/kernel/own'
import { jsonText, say } from '../terminal.ts'

type Style = Parameters<typeof styleText>[0]

/** Text in a colour, where the output is a terminal and NO_COLOR is not set. */
export const paint = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout, validateStream: true })

const STYLES: Readonly<Record<string, Style>> = {
  running: 'green',
  live: 'green',
  active: 'green',
  verified: 'green',
  succeeded: 'green',
  building: 'cyan',
  releasing: 'cyan',
  creating: 'cyan',
  queued: 'cyan',
  pending: 'yellow',
  stopped: 'dim',
  superseded: 'dim',
  cancelled: 'dim',
  failed: 'red',
  crashed: 'red',
}
/** A status, in the colour of its kind. */
export function status(text: string): string {
  const style = own(STYLES, text)
  return style === undefined ? text : paint(style, text)
}

const widthOf = (text: string) => [...stripVTControlCharacters(text)].length

/** Lines with columns below each other; the last column is as long as it is. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, index) =>
    Math.max(widthOf(title), ...rows.map((row) => widthOf(row[index] ?? ''))),
  )
  const lineOf = (cells: readonly string[]) =>
    cells
      .map((cell, index) =>
        index === cells.length - 1 ? cell : cell + ' '.repeat((widths[index] ?? 0) - widthOf(cell)),
      )
      .join('  ')
      .trimEnd()
  return [paint('dim', lineOf(head.map((title) => title.toUpperCase()))), ...rows.map(lineOf)].join('\n')
}

/** Facts below each other: a name and what it is. What is empty is left out. */
export function facts(rows: readonly (readonly [string, string | null | undefined])[]): string {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== '')
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${paint('dim', name.padEnd(width))}  ${value}`).join('\n')
}

/** Shows a result: as it is for programs, or as people read it. */
export function show(options: { json?: boolean }, value: unknown, text: () => string): void {
  say(options.json ? jsonText(value, 2) : text())
}

const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
]
/** How long something takes or lasts, in one unit. */
export function span(total_s: number): string {
  const [size, name] = UNITS.find(([each]) => total_s >= each) ?? [1, 's']
  return `${Math.floor(total_s / size)} ${name}`
}
/** How long ago, in one unit. */
export const ago = (at: string, now = Date.now()): string =>
  `${span(Math.max(0, Math.round((now - Date.parse(at)) / 1000)))} ago`
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
