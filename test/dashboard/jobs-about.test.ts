import { expect, it } from 'vitest'
import { EVENT_TYPES } from '#server/kernel/event-types'
import { ABOUT } from '../../dashboard/src/features/jobs/jobs.ts'
import { readSources } from '../meta/sources.ts'

/** Work that no event tells of: a page shows how it went when it is opened. */
const UNTOLD = ['projects.remove_network', 'secrets.rotate']
const WORDS: Record<string, string> = { deploy: 'deployment' }

it('the pages of jobs follow the events of everything that jobs work on', () => {
  const kinds = readSources(['server']).flatMap(({ text }) =>
    [...text.matchAll(/(?:\bkind: |KIND = )'((?:[a-z]+\.[a-z_]+)|deploy)'/g)].map(([, kind = '']) => kind),
  )
  expect(kinds).toEqual(
    expect.arrayContaining(['deploy', 'backup.restore', 'database.start', 'volume.delete']),
  )
  const nouns = kinds.filter((kind) => !UNTOLD.includes(kind)).map((kind) => kind.split('.')[0]!)
  expect(nouns.map((noun) => WORDS[noun] ?? noun).filter((noun) => !ABOUT.includes(noun))).toEqual([])
  const told = new Set(Object.keys(EVENT_TYPES).map((type) => type.split('.')[0]!))
  expect(ABOUT.filter((noun) => !told.has(noun))).toEqual([])
})
