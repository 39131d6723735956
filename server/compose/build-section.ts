import type { ServiceContext } from './context.ts'
import { own } from '#server/kernel/own'
import { at, isFields } from './issues.ts'
import type { ComposeBuild } from './model.ts'
import { inCheckout } from './repository-path.ts'
import { readPairs, readText } from './values.ts'

/** `build`: a folder, or a mapping. Undefined where it is not taken. */
export function readBuild(context: ServiceContext, value: unknown, path: string): ComposeBuild | null {
  const { issues, directory, files, variables } = context
  if (value === undefined || value === null) return null
  const fields = isFields(value) ? value : { context: value }
  const here = isFields(value) ? at(path, 'context') : path
  const folder = inCheckout(directory, readText(issues, fields.context, here) ?? '.')
  const inline = readText(issues, fields.dockerfile_inline, at(path, 'dockerfile_inline')) ?? null
  const dockerfile = readText(issues, fields.dockerfile, at(path, 'dockerfile')) ?? null
  if (folder === undefined) issues.add(here, 'is refused: it is not a folder of the repository.')
  if (dockerfile !== null && inline !== null)
    issues.add(at(path, 'dockerfile_inline'), 'cannot be given together with dockerfile.')
  if (dockerfile !== null && inCheckout(folder ?? '.', dockerfile) === undefined)
    issues.add(at(path, 'dockerfile'), 'is refused: it is not a file of the repository.')
  if (!files && inline === null) issues.add(path, 'is refused: the file has no repository to build from.')
  if (files && folder && folder !== '.' && !files.files().some((name) => name.startsWith(`${folder}/`)))
    issues.add(here, 'names a folder that is not in the repository.')
  const args: Record<string, string> = {}
  for (const [name, text] of readPairs(issues, fields.args, at(path, 'args'))) {
    const known = text ?? own(variables, name)
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(name) || /^BUILDKIT_/i.test(name))
      issues.add(at(path, 'args'), 'has a name that no build argument may have.')
    else if (known !== undefined) args[name] = known
  }
  const target = readText(issues, fields.target, at(path, 'target')) ?? null
  if (target !== null && !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(target))
    issues.add(at(path, 'target'), 'must be the name of a stage.')
  return { context: folder ?? '.', dockerfile, inline, args, target }
}
