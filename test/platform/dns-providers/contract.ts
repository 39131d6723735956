import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DnsProvider, DnsProviderDescriptor } from '#server/platform/dns-providers/provider'
import { createGuardedClient, type GuardedClient } from '#server/platform/outbound/client'
import type { OutboundPolicy } from '#server/platform/outbound/outbound'

/** One provider with its world: a zone `example.test` that can be read back. */
export interface ProviderWorld {
  descriptor: DnsProviderDescriptor
  config: Record<string, unknown>
  /** The same with a credential that is not right. */
  wrong: Record<string, unknown>
  /** Values of a TXT record as the world sees them. */
  read(name: string): Promise<string[]>
  policy: OutboundPolicy
  close(): Promise<void>
}

export const ZONE = 'example.test'
const NAME = `_acme-challenge.shop.${ZONE}`

/** What holds for every provider, whatever it speaks. */
export function describeDnsProvider(title: string, open: () => Promise<ProviderWorld>): void {
  describe(`the DNS provider ${title}`, () => {
    let world: ProviderWorld
    let client: GuardedClient
    const create = (config: Record<string, unknown>): DnsProvider =>
      world.descriptor.create(v.parse(world.descriptor.config, config), {
        client,
        policy: world.policy,
      })
    let provider: DnsProvider
    beforeAll(async () => {
      world = await open()
      client = createGuardedClient(world.policy)
      provider = create(world.config)
    })
    afterAll(async () => {
      await client.close()
      await world.close()
    })

    test('accepts credentials that may write, and leaves nothing behind', async () => {
      await provider.check()
      expect(await world.read(`_acme-challenge.portreeve-check.${ZONE}`)).toEqual([])
    })
    test('keeps values of one name beside each other, takes a repeated one, and removes exactly one', async () => {
      await provider.addTxt(NAME, 'first-value_1')
      await provider.addTxt(NAME, 'second-value')
      await provider.addTxt(NAME, 'second-value')
      expect((await world.read(NAME)).sort()).toEqual(['first-value_1', 'second-value'])
      await provider.removeTxt(NAME, 'first-value_1')
      expect(await world.read(NAME)).toEqual(['second-value'])
      await provider.removeTxt(NAME, 'second-value')
      await provider.removeTxt(NAME, 'second-value')
      expect(await world.read(NAME)).toEqual([])
    })
    test('says in one sentence that a wrong credential was refused, without the credential', async () => {
      const wrong = create(world.wrong)
      for (const attempt of [() => wrong.check(), () => wrong.addTxt(NAME, 'value')]) {
        const error = await attempt().then(
          () => undefined,
          (caught: unknown) => caught as Error,
        )
        expect(error).toMatchObject({
          name: 'DnsProviderError',
          message: expect.stringMatching(/refused/),
        })
        for (const secret of world.descriptor.secrets)
          expect(error!.message).not.toContain(String(world.wrong[secret]))
      }
      expect(await world.read(NAME)).toEqual([])
    })
    test.each([
      ['a name outside of the zone', '_acme-challenge.example.com', 'value'],
      ['a name that only ends alike', '_acme-challenge.notexample.test', 'value'],
      ['a name with a line break', `x\nupdate delete ${ZONE}`, 'value'],
      ['a name with a blank', `a b.${ZONE}`, 'value'],
      ['a value with a quote', NAME, 'a" 60 A 1.2.3.4'],
      ['a value with a line break', NAME, 'a\nsend'],
    ])('refuses %s before anything is sent', async (_what, name, value) => {
      await expect(provider.addTxt(name, value)).rejects.toMatchObject({ name: 'DnsProviderError' })
      await expect(provider.removeTxt(name, value)).rejects.toMatchObject({
        name: 'DnsProviderError',
      })
      expect(await world.read(NAME)).toEqual([])
    })
    test('stops when the caller does', async () => {
      await expect(provider.addTxt(NAME, 'value', AbortSignal.abort())).rejects.toMatchObject({
        name: 'DnsProviderError',
      })
      expect(await world.read(NAME)).toEqual([])
    })
    test('has a form: every field has a title and a description, and its secrets are fields', () => {
      const entries = (world.descriptor.config as unknown as { entries: Record<string, v.GenericSchema> })
        .entries
      expect(Object.keys(entries)).toEqual(expect.arrayContaining([...world.descriptor.secrets]))
      if (title !== 'fake')
        expect(
          Object.values(entries).filter((entry) => !v.getTitle(entry) || !v.getDescription(entry)),
        ).toEqual([])
    })
  })
}
