import { eventually, type Portreeve } from './portreeve.ts'

/** Waits until the work on a database that was asked for last has ended; answers the database. */
export const settledDatabase = (portreeve: Portreeve, id: string): Promise<any> =>
  eventually(
    `The work on ${id} ending`,
    async () => {
      const { body } = await portreeve.call('GET', `/api/databases/${id}`)
      return ['queued', 'running', 'undoing'].includes(body.data.job?.status) ? undefined : body.data
    },
    180_000,
  )
