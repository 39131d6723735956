import { discord } from './discord.ts'
import { email } from './email.ts'
import { generic } from './generic.ts'
import type { Notifier } from './notifier.ts'
import { ntfy } from './ntfy.ts'
import { slack } from './slack.ts'
import { telegram } from './telegram.ts'

/** Every kind of receiver. */
export const NOTIFIERS = [generic, slack, discord, telegram, ntfy, email] as const
const BY_NAME: ReadonlyMap<string, Notifier> = new Map(
  NOTIFIERS.map((notifier) => [notifier.name, notifier as unknown as Notifier]),
)

export const findNotifier = (name: string): Notifier | undefined => BY_NAME.get(name)
