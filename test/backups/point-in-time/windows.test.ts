import { describe, expect, it } from 'vitest'
import type { CopyRow, PieceRow } from '#server/backups/point-in-time/repository'
import { copyFor, leftover, piecesFor, windowOf } from '#server/backups/point-in-time/windows'
import { postgresLog } from '#server/databases/engines/postgres-log'

const copy = (id: string, first_piece: string, ready_at: string | null): CopyRow => ({
  id,
  archive_id: 'log_a',
  status: ready_at === null ? 'copying' : 'ready',
  object_key: id,
  first_piece,
  ready_at,
  size_bytes: 1,
  original_bytes: 1,
  sha256: '',
  created_at: ready_at ?? '',
})
const piece = (name: string, complete_until: string | null = null): PieceRow => ({
  archive_id: 'log_a',
  name,
  size_bytes: 1,
  original_bytes: 1,
  sha256: '',
  complete_until,
  archived_at: '',
})
const day = (number: number) => `2026-03-${String(number).padStart(2, '0')}T00:00:00.000Z`
const next = (name: string) => String(Number(name) + 1)

describe('what can be gone back to', () => {
  it('begins with the first whole copy and ends with the log', () => {
    const copies = [copy('a', '1', day(1)), copy('b', '5', day(2)), copy('c', '9', null)]
    expect(windowOf({ complete_until: day(3) }, copies)).toEqual({ from: day(1), until: day(3) })
    expect(windowOf({ complete_until: null }, copies)).toBeUndefined()
    expect(windowOf({ complete_until: day(3) }, copies.slice(2))).toBeUndefined()
    expect(copyFor(copies, day(2))?.id).toBe('b')
  })
  it('needs every piece from the copy on, up to one that is complete until then', () => {
    const pieces = [piece('5'), piece('6', day(3)), piece('7', day(4)), piece('8')]
    const names = (at: string) => piecesFor(copy('b', '5', day(2)), pieces, at, next)?.map(({ name }) => name)
    expect(names(day(3))).toEqual(['5', '6'])
    expect(names(day(5))).toEqual(['5', '6', '7', '8'])
  })
  it('is nothing when a piece is missing', () => {
    const broken = [piece('5'), piece('7', day(4))]
    expect(piecesFor(copy('b', '5', day(2)), broken, day(4), next)).toBeUndefined()
    expect(piecesFor(copy('b', '4', day(2)), broken, day(4), next)).toBeUndefined()
    expect(piecesFor(copy('b', '5', day(2)), [], day(4), next)).toBeUndefined()
  })
})

describe('what is left over', () => {
  const copies = [copy('a', '1', day(1)), copy('b', '5', day(5)), copy('c', '9', day(9))]
  const open = { status: 'active' as const, days: 3, complete_until: day(9) }
  it('is everything before the newest copy that is as old as what must be possible', () => {
    expect(leftover(open, copies, Date.parse(day(9)))).toEqual({
      whole: false,
      copies: [copies[0]],
      before: '5',
    })
  })
  it('is nothing while there is no older copy to go back from', () => {
    expect(leftover(open, copies.slice(2), Date.parse(day(9))).copies).toEqual([])
  })
  it('never is a piece that a copy under way will need', () => {
    const under_way = [...copies, copy('d', '7', null)]
    expect(leftover({ ...open, days: 1 }, under_way, Date.parse(day(20))).before).toBe('7')
  })
  it('is all of an archive that ended before the days began', () => {
    const closed = { ...open, status: 'closed' as const }
    expect(leftover(closed, copies, Date.parse(day(13))).whole).toBe(true)
    expect(leftover(closed, copies, Date.parse(day(11))).whole).toBe(false)
  })
})

describe('pieces of PostgreSQL', () => {
  it.each([
    ['000000010000000000000001', '000000010000000000000002'],
    ['0000000100000000000000FF', '000000010000000100000000'],
    ['00000002000000AB000000FE', '00000002000000AB000000FF'],
  ])('%s is followed by %s', (name, following) => expect(postgresLog.next(name)).toBe(following))
})
