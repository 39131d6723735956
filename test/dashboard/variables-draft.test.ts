import { describe, expect, it } from 'vitest'
import {
  addRow,
  changesOf,
  type DraftRow,
  editRow,
  faultOf,
  importOf,
  keyOfField,
  seeAgain,
  spread,
} from '../../dashboard/src/features/variables/draft.ts'
import { missingOf } from '../../dashboard/src/features/variables/suggested.ts'

const TOKEN = {
  ...{ key: 'TOKEN', value: '********', secret: true, version: 3 },
  ...{ scopes: ['runtime'], comment: 'of the shop' },
}
const begin = (...rows: Partial<DraftRow>[]): DraftRow[] =>
  rows.map((row, at) => ({ id: at + 1, key: '', value: '', use: '', secret: false, comment: '', ...row }))
const cells = (rows: DraftRow[]) => rows.map(({ key, value }) => `${key}=${value}`)

describe('a draft of variables', () => {
  it('spreads a paste over rows, behind the one it went into; what stands there already gets the value', () => {
    const rows = begin({ key: 'A', value: '1' }, {}, { key: 'Z', value: '9' })
    const found = [
      { key: 'B', value: '2', comment: 'two' },
      { key: 'A', value: 'one', comment: null },
      { key: 'C', value: '3', comment: null },
    ]
    spread(rows, found, 2)
    expect(cells(rows)).toEqual(['A=one', 'B=2', 'C=3', 'Z=9'])
    expect(rows[1]!.comment).toBe('two')
    expect(new Set(rows.map(({ id }) => id)).size).toBe(4)
  })
  it('begins with what is taken over, and adds one empty row at a time', () => {
    const rows: DraftRow[] = []
    spread(rows, [{ key: 'A', value: '1', comment: null }])
    expect([addRow(rows), addRow(rows)]).toEqual([2, 2])
    expect(cells(rows)).toEqual(['A=1', '='])
  })
  it('never shows a secret that exists, and keeps it while its cell is empty', () => {
    const rows: DraftRow[] = []
    editRow(rows, TOKEN as Parameters<typeof editRow>[1])
    editRow(rows, TOKEN as Parameters<typeof editRow>[1])
    expect(cells(rows)).toEqual(['TOKEN='])
    rows[0]!.comment = ''
    expect(importOf(rows)).toEqual({
      mode: 'merge',
      variables: { TOKEN: '********' },
      details: { TOKEN: { scopes: ['runtime'], secret: true, comment: null } },
      versions: { TOKEN: 3 },
    })
    rows[0]!.value = 'new'
    expect(importOf(rows).variables).toEqual({ TOKEN: 'new' })
  })
  it('takes the place of what a colleague changed meanwhile only once that was told', () => {
    const rows = begin({ key: 'NEW', value: '1' })
    editRow(rows, TOKEN as Parameters<typeof editRow>[1])
    editRow(rows, { ...TOKEN, key: 'GONE' } as Parameters<typeof editRow>[1])
    expect(importOf(rows).versions).toEqual({ TOKEN: 3, GONE: 3 })
    seeAgain(rows, [{ key: 'TOKEN', version: 4 }])
    expect(importOf(rows).versions).toEqual({ TOKEN: 4, GONE: 0 })
  })
  it('says of a new variable only what was chosen, and nothing of an empty row', () => {
    const rows = begin({ key: ' A ', value: '1' }, { key: 'B', value: '', use: 'build', secret: true }, {})
    expect(importOf(rows)).toEqual({
      mode: 'merge',
      variables: { A: '1', B: '' },
      details: { A: {}, B: { scopes: ['build'], secret: true } },
    })
    expect(changesOf(rows, [{ key: 'B', value: undefined }])).toEqual([
      { key: 'A', kind: 'added' },
      { key: 'B', kind: 'changed' },
    ])
  })
  it('says which rows cannot be saved', () => {
    const rows = begin({ key: 'A', value: '1' }, { value: '2' }, { key: 'A', value: '3' }, {}, { key: '1 B' })
    expect(rows.map((row) => faultOf(rows, row))).toEqual([
      undefined,
      'Give it a key.',
      'Stands above already.',
      undefined,
      'Must be letters, digits and _, and not begin with a digit.',
    ])
  })
  it('knows whose refusal it was', () => {
    const paths = ['variables.A', 'variables: B', 'details.C.comment', 'text']
    expect(paths.map(keyOfField)).toEqual(['A', 'B', 'C', undefined])
  })
})

it('what the repository suggests is what neither the app nor its draft has', () => {
  const suggested = ['A', 'B', 'C'].map((key) => ({ key, value: '', comment: null }))
  const missing = missingOf(suggested, [{ key: 'A' }], begin({ key: 'B' }))
  expect(missing.map(({ key }) => key)).toEqual(['C'])
  expect(missingOf(undefined, [], [])).toEqual([])
})
