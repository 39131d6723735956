import { bitbucket } from './bitbucket.ts'
import type { Forge } from './forge.ts'
import { forgejo } from './forgejo.ts'
import { gitea } from './gitea.ts'
import { github } from './github.ts'
import { gitlab } from './gitlab.ts'

/** Every forge whose webhooks are understood. */
export const FORGES = [github, gitlab, gitea, forgejo, bitbucket] as const
const BY_NAME: ReadonlyMap<string, Forge> = new Map(FORGES.map((forge) => [forge.name, forge]))

export const findForge = (name: string): Forge | undefined => BY_NAME.get(name)
