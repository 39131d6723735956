import { afterEach, expect, test } from 'vitest'
import { type PageQuery, selectPage } from '#server/kernel/page'
import { createTestKernel } from '#test/support/kernel'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** Sixty apps of three projects, taking turns. */
function apps() {
  const kernel = createTestKernel()
  cleanups.push(() => kernel.dispose())
  const { db } = kernel
  const projects = ['prj_a', 'prj_b', 'prj_c']
  for (const id of projects)
    db.sql(`INSERT INTO projects (id, name, created_at, updated_at) VALUES (?, ?, '', '')`).run(id, id)
  for (let n = 0; n < 60; n += 1)
    db.sql(
      `INSERT INTO apps (id, name, project_id, status, source, created_at, updated_at) VALUES (?, ?, ?, 'stopped', 'git', '', '')`,
    ).run(`app_${n}`, `app-${n}`, projects[n % 3])
  return (query: Partial<PageQuery>, offset = 0) => {
    const all = { table: 'apps', counted: true, project_ids: undefined }
    const { rows, total } = selectPage<{ id: string }>(db, { ...all, ...query }, [5, offset])
    return { ids: rows.map(({ id }) => Number(id.slice(4))), total }
  }
}

test('a page of several projects is the newest of all of them together, page after page', () => {
  const page = apps()
  expect(page({ project_ids: ['prj_a', 'prj_c'] })).toEqual({
    ids: [59, 57, 56, 54, 53],
    total: 40,
  })
  expect(page({ project_ids: ['prj_a', 'prj_c'] }, 5)).toEqual({
    ids: [51, 50, 48, 47, 45],
    total: 40,
  })
  expect(page({ project_ids: ['prj_a', 'prj_c'] }, 38)).toEqual({ ids: [2, 0], total: 40 })
  expect(page({ project_ids: ['prj_a', 'prj_c'] }, 40)).toEqual({ ids: [], total: 40 })
})

test('one project, all projects, none, and more projects than are merged give the same order', () => {
  const page = apps()
  expect(page({ project_ids: ['prj_b'] })).toEqual({ ids: [58, 55, 52, 49, 46], total: 20 })
  expect(page({})).toEqual({ ids: [59, 58, 57, 56, 55], total: 60 })
  expect(page({ project_ids: [] })).toEqual({ ids: [], total: 0 })
  const many = [...Array.from({ length: 300 }, (_, n) => `prj_${n}`), 'prj_a', 'prj_c']
  expect(page({ project_ids: many }, 5)).toEqual(page({ project_ids: ['prj_a', 'prj_c'] }, 5))
})
