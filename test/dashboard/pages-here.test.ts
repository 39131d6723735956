import { expect, it } from 'vitest'
import { defineFeature, features, pagesHere } from '../../dashboard/src/shell/feature.ts'

it('the palette knows the pages of the app or project that is open', () => {
  const component = () => Promise.resolve({})
  features.push(
    defineFeature({
      routes: [],
      app_tabs: [
        { label: 'Logs', path: 'logs', order: 2, component },
        { label: 'Overview', path: '', order: 1, component },
      ],
      project_tabs: [{ label: 'Members', path: 'members', order: 1, component }],
    }),
  )
  expect(pagesHere('/apps/app_1/logs')).toEqual([
    { label: 'Overview', to: '/apps/app_1', of: '/apps/app_1' },
    { label: 'Logs', to: '/apps/app_1/logs', of: '/apps/app_1' },
  ])
  expect(pagesHere('/projects/prj_1').map(({ to }) => to)).toEqual(['/projects/prj_1/members'])
  expect([...pagesHere('/apps'), ...pagesHere('/apps/new'), ...pagesHere('/')]).toEqual([])
})
