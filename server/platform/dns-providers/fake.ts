import * as v from 'valibot'
import { checkRecord, ZoneName } from './names.ts'
import { type DnsProviderDescriptor, DnsProviderError } from './provider.ts'

const Config = v.strictObject({ zone: ZoneName, token: v.string() })

/** A zone in memory, **for tests only**; the contract suite that checks the real providers checks it too. */
export interface FakeDns {
  descriptor: DnsProviderDescriptor<typeof Config>
  /** TXT values by absolute name. */
  readonly records: ReadonlyMap<string, readonly string[]>
  /** Every call from now on is refused with this sentence; undefined ends that. */
  failWith(message: string | undefined): void
}

export function createFakeDns(): FakeDns {
  const records = new Map<string, string[]>()
  let failure: string | undefined
  const called = (token: string, signal: AbortSignal | undefined) => {
    if (signal?.aborted) throw new DnsProviderError('The update was cancelled.')
    if (failure !== undefined) throw new DnsProviderError(failure)
    if (token !== 'good') throw new DnsProviderError('The token was refused.')
  }
  return {
    records,
    failWith(message) {
      failure = message
    },
    descriptor: {
      name: 'fake',
      title: 'Fake',
      config: Config,
      secrets: ['token'],
      create: ({ zone, token }) => ({
        check: async (signal) => called(token, signal),
        async addTxt(name, value, signal) {
          checkRecord(zone, name, value)
          called(token, signal)
          records.set(name, [...new Set([...(records.get(name) ?? []), value])])
        },
        async removeTxt(name, value, signal) {
          checkRecord(zone, name, value)
          called(token, signal)
          records.set(
            name,
            (records.get(name) ?? []).filter((known) => known !== value),
          )
        },
      }),
    },
  }
}
