import { expect, it } from 'vitest'
import { createListedAddresses } from '#server/platform/host-rules/listed-addresses'

it('opens the private addresses that the names of the list have now, and goes on when one is not found', async () => {
  const listed = createListedAddresses(
    ['10.9.0.0/16', 'forge.internal:3000', 'absent.internal'],
    async (name) => {
      if (name === 'absent.internal') throw new Error('not there')
      return [
        { address: '10.0.0.5', family: 4 },
        { address: '93.184.216.34', family: 4 },
      ]
    },
  )
  await listed.lookUp()
  expect(listed.openings()).toEqual([{ network: '10.9.0.0/16' }, { network: '10.0.0.5', port: 3000 }])
})
