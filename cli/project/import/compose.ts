import { ComposeError, parseCompose } from '#server/compose/parse'
import { beginsEmpty, createMoved, environmentOf, type Moved } from './moved.ts'

/** A compose file as one app. What of it is taken and what is ignored is said by its reader. */
export function fromCompose(text: string, name: string, env: string | undefined): Moved {
  const moved = createMoved()
  const at = `compose file ${name}`
  const variables = environmentOf(env)
  try {
    const plan = parseCompose(text, { variables })
    const asked = new Set(plan.variables.map((use) => use.name))
    const desired = Object.fromEntries(Object.entries(variables).filter(([key]) => asked.has(key)))
    moved.addApp(at, name, { source: 'compose', compose: text }, desired)
    for (const { path, text: why } of plan.ignored)
      moved.note('changed', `${at} ${path}`, `is left out. ${why}`)
    for (const volume of plan.volumes) moved.note('changed', `${at} volume ${volume}`, beginsEmpty(volume))
    for (const use of plan.variables)
      if (!Object.hasOwn(variables, use.name))
        moved.note(
          'changed',
          `${at} \${${use.name}}`,
          'has no value here: set it as a variable of the app, or give the file with --env.',
        )
  } catch (error) {
    if (!(error instanceof ComposeError)) throw error
    for (const issue of error.issues) moved.note('refused', `${at} ${issue.path}`, issue.message)
  }
  return moved
}
