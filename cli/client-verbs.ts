import type { Verb } from './verb.ts'

/** What works on a server that somebody is logged in to, through its API. */
export const CLIENT_VERBS: readonly Verb[] = [
  { name: 'login', summary: 'log in to a server', load: () => import('./client/verbs/login.ts') },
  { name: 'logout', summary: 'end the login', load: () => import('./client/verbs/logout.ts') },
  {
    name: 'context',
    summary: 'choose among several servers',
    load: () => import('./client/verbs/context.ts'),
  },
  { name: 'status', summary: 'how the server or an app is', load: () => import('./client/verbs/status.ts') },
  {
    name: 'apps',
    summary: 'list apps; start, stop and delete one',
    load: () => import('./client/verbs/apps.ts'),
  },
  {
    name: 'create',
    summary: 'make an app from a repository or an image',
    load: () => import('./client/verbs/create.ts'),
  },
  { name: 'deploy', summary: 'deploy this folder or an app', load: () => import('./client/verbs/deploy.ts') },
  {
    name: 'rollback',
    summary: 'bring an earlier release back',
    load: () => import('./client/verbs/rollback.ts'),
  },
  {
    name: 'logs',
    summary: 'show and follow what an app prints',
    load: () => import('./client/verbs/logs.ts'),
  },
  { name: 'exec', summary: 'run a command beside an app', load: () => import('./client/verbs/exec.ts') },
  { name: 'env', summary: 'variables of an app', load: () => import('./client/verbs/env.ts') },
  { name: 'db', summary: 'databases', load: () => import('./client/verbs/db.ts') },
  { name: 'domains', summary: 'domains of apps', load: () => import('./client/verbs/domains.ts') },
  { name: 'nodes', summary: 'servers that run apps', load: () => import('./client/verbs/nodes.ts') },
  { name: 'plan', summary: 'what apply would change', load: () => import('./client/verbs/plan.ts') },
  {
    name: 'apply',
    summary: 'make a project as portreeve.yaml says',
    load: () => import('./client/verbs/apply.ts'),
  },
  {
    name: 'export',
    summary: 'write portreeve.yaml of what runs',
    load: () => import('./client/verbs/export.ts'),
  },
  {
    name: 'import',
    summary: 'move apps in from elsewhere',
    load: () => import('./client/verbs/import.ts'),
  },
  { name: 'open', summary: 'open an app in the browser', load: () => import('./client/verbs/open.ts') },
  {
    name: 'completion',
    summary: 'print what makes a shell complete commands',
    load: () => import('./completion.ts'),
  },
]
