import { giteaLike } from './gitea.ts'

export const forgejo = giteaLike('forgejo', 'Forgejo', 'forgejo')
