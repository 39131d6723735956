import * as v from 'valibot'
import { dnsName } from '#server/kernel/dns-names'
import { DnsProviderError } from './provider.ts'

const NAME = dnsName({ labels: 2 })

/** The apex of a zone, lower case, without a trailing dot. */
export const ZoneName = v.pipe(
  v.string(),
  v.trim(),
  v.toLowerCase(),
  v.transform((text) => text.replace(/\.$/, '')),
  v.regex(NAME, 'must be the name of a zone such as example.com.'),
  v.title('Zone'),
  v.description('Name of the zone, such as `example.com`. Records are written at it and below it.'),
  v.examples(['example.com']),
)

/**
 * Refuses what is no TXT record of this zone, before anything is sent: both texts end up in requests and
 * commands.
 */
export function checkRecord(zone: string, name: string, value: string): void {
  if (!NAME.test(name) || (name !== zone && !name.endsWith(`.${zone}`)))
    throw new DnsProviderError(
      `${NAME.test(name) ? name : 'The name'} is not in the zone ${zone}, the only one that the DNS provider is set up for.`,
    )
  if (!/^[A-Za-z0-9_=-]{1,255}$/.test(value))
    throw new DnsProviderError('The value of the TXT record has characters that are not written.')
}

/**
 * Where a provider proves that it may write: beside the records of real challenges, never at a name that
 * means something.
 */
export const probeName = (zone: string): string => `_acme-challenge.portreeve-check.${zone}`
