import { shellWord } from '#server/kernel/shell-word'
import type { SourceTree } from '../../plan.ts'
import { skim } from '../../tree-queries.ts'
import type { PythonFrameworkPlan } from './framework-facts.ts'
import { moduleName, type PythonProject } from './project.ts'

/** A program without a server in front: the file that is there to be run. */
export function planScript(
  tree: SourceTree,
  project: PythonProject,
  files: readonly string[],
): PythonFrameworkPlan {
  const named = [
    'main.py',
    'app.py',
    'server.py',
    'run.py',
    'wsgi.py',
    'bot.py',
    'index.py',
    'application.py',
    'start.py',
    'hello.py',
    'src/main.py',
    'src/app.py',
    'src/server.py',
    'app/main.py',
    'app/app.py',
    'server/main.py',
  ].find((path) => tree.has(path))
  const module =
    files.map((path) => path).find((path) => path.endsWith('/__main__.py')) ??
    tree.files().find((path) => /^(?:src\/)?[A-Za-z_][\w-]*\/__main__\.py$/.test(path))
  const guarded = files.find((path) => !path.includes('/') && /^if __name__[ ]*==/m.test(skim(tree, path)))
  const file =
    named ??
    (module === undefined
      ? (guarded ??
        (files.filter((path) => !path.includes('/')).length === 1
          ? files.find((path) => !path.includes('/'))
          : undefined))
      : undefined)
  const text = skim(tree, file)
  const port =
    /PORT['"]\s{0,5},\s{0,5}['"]?(\d{2,5})/.exec(text)?.[1] ??
    (/\bPORT\b/.test(text) && /environ|getenv/.test(text)
      ? undefined
      : (/\bport\s{0,5}=\s{0,5}(\d{2,5})\b/i.exec(text)?.[1] ??
        /\(\s{0,5}['"][\d.]*['"]\s{0,5},\s{0,5}(\d{2,5})\s{0,5}\)/.exec(text)?.[1]))
  const base = { framework: null, port: port === undefined ? 8000 : Number(port) }
  if (file !== undefined) return { ...base, start: `python ${shellWord(file)}`, source: file }
  if (module !== undefined) {
    const in_src = module.startsWith('src/')
    return {
      ...base,
      start: `python -m ${moduleName(in_src ? module.slice(4) : module).replace(/\.__main__$/, '')}`,
      source: module,
      folder: in_src ? 'src' : undefined,
    }
  }
  const script = Object.keys(
    (project.pyproject?.project as { scripts?: object } | undefined)?.scripts ?? {},
  )[0]
  return {
    ...base,
    start: script !== undefined && /^[A-Za-z0-9_.-]+$/.test(script) ? script : undefined,
    source: 'project.scripts in pyproject.toml',
  }
}
