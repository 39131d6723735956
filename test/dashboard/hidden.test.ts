import { expect, it } from 'vitest'
import { parseAnsi, plainText } from '@/lib/ansi'
import { partsOf } from '@/lib/hidden'

it('marks that turn the order of letters stand alone, by their names, and none is lost', () => {
  const text = 'to \u202eevil\u202c or \u2067not\u2069\u2028next'
  const parts = partsOf(text)
  expect(parts.flatMap(({ mark }) => mark ?? [])).toEqual(['RLO', 'PDF', 'RLI', 'PDI', 'LS'])
  for (const { text: part, mark } of parts) expect(mark === undefined).toBe(!/[\u2000-\u206f]/.test(part))
  expect(parts.map((part) => part.text).join('')).toBe(text)
})
it('letters of scripts that are read from the right are no such marks', () => {
  expect(partsOf('\u05e9\u05dc\u05d5\u05dd \u200f\u0645\u0631\u062d\u0628\u0627')).toHaveLength(1)
  expect(partsOf('')).toEqual([])
})
it.each([
  ['\u200f100 / 2', 'RLM'],
  ['1 \u200f- 2', 'RLM'],
  ['\u061c8080 -> 9090', 'ALM'],
])(
  'a mark of such scripts without any of their letters turns numbers around, and is named: %j',
  (text, name) => {
    const parts = partsOf(text)
    expect(parts.flatMap(({ mark }) => mark ?? [])).toEqual([name])
    expect(parts.map((part) => part.text).join('')).toBe(text)
  },
)
it('a line of a log keeps them apart within its colours, and is searched and saved with them', () => {
  const line = '\u001b[31mok \u202edeliaf\u001b[0m'
  expect(parseAnsi(line)).toEqual([
    { text: 'ok ', colour: 'red' },
    { text: '\u202e', mark: 'RLO', colour: 'red' },
    { text: 'deliaf', colour: 'red' },
  ])
  expect(parseAnsi('a\u2069b').map(({ mark }) => mark)).toEqual([undefined, 'PDI', undefined])
  expect(plainText(line)).toBe('ok \u202edeliaf')
})
