import { createMoved, environmentOf, type Moved } from './moved.ts'
import { readStack } from './stack.ts'

/** A compose file as one app. What of it is taken and what is ignored is said by its reader. */
export function fromCompose(text: string, name: string, env: string | undefined): Moved {
  const moved = createMoved()
  const variables = environmentOf(env)
  const asked = new Set(readStack(text, variables, name).asked)
  const desired = Object.fromEntries(Object.entries(variables).filter(([key]) => asked.has(key)))
  moved.addApp(`compose file ${name}`, name, { source: 'compose', compose: text }, desired)
  return moved
}
