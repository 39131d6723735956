import { expect, it } from 'vitest'
import { eventsOf, tellingOf, titleOf } from '../../dashboard/src/features/webhooks/words.ts'

it('what a notification tells is the choice of the server, everything, or what was listed', () => {
  expect(eventsOf('usual', 'ignored')).toBeUndefined()
  expect(eventsOf('all', '')).toEqual(['*'])
  expect(eventsOf('chosen', ' alert.*\n\ndeployment.failed, app.crashed\n')).toEqual([
    'alert.*',
    'deployment.failed',
    'app.crashed',
  ])
})
it('what a webhook tells comes back into the form as it is', () => {
  for (const events of [['*'], ['alert.*', 'cron.failed']]) {
    const { telling, text } = tellingOf(events)
    expect(eventsOf(telling, text)).toEqual(events)
  }
})
it('forges and receivers have the names that people know them by', () => {
  expect(['github', 'gitlab', 'ntfy', 'email', 'later'].map(titleOf)).toEqual([
    'GitHub',
    'GitLab',
    'ntfy',
    'E-mail',
    'later',
  ])
})
