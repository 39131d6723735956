import { expect, it } from 'vitest'
import { defineFeature, features } from '../../dashboard/src/shell/feature.ts'
import { allShortcuts } from '../../dashboard/src/shell/shortcuts.ts'

it('the help for the keyboard lists the pages that have a key and that the user may see', () => {
  const page = { icon: () => null, group: 'Deliver', order: 1 } as const
  features.push(
    defineFeature({
      routes: [],
      entries: [
        { ...page, label: 'Apps', to: '/apps', key: 'a' },
        { ...page, label: 'Disk', to: '/disk' },
        { ...page, label: 'Team', to: '/team', key: 't', visible: () => false },
      ],
    }),
  )
  const [everywhere, pages] = allShortcuts()
  expect(everywhere?.shortcuts.map(({ keys }) => keys.join('+'))).toEqual(['Ctrl+K', '/', '?'])
  expect(pages?.shortcuts).toEqual([{ keys: ['G', 'A'], does: 'Apps' }])
})
