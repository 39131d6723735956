import { shellWord } from '#server/kernel/shell-word'
import type { SourceTree } from '../../plan.ts'
import { folderOf, skim } from '../../tree-queries.ts'
import type { PythonFrameworkPlan } from './framework-facts.ts'
import { moduleName, requires, type PythonProject } from './project.ts'

/** Django: its settings say how it is served, and whether its database outlives an instance. */
export function planDjango(tree: SourceTree, project: PythonProject, manage: string): PythonFrameworkPlan {
  const folder = folderOf(manage)
  const inside = tree.sub(folder)
  const wsgi = inside.files().find((path) => /^(?:[A-Za-z_]\w*\/){1,2}wsgi\.py$/.test(path))
  const asgi = inside.files().find((path) => /^(?:[A-Za-z_]\w*\/){1,2}asgi\.py$/.test(path))
  const settings = inside
    .files()
    .filter((path) => /^(?:[A-Za-z_]\w*\/){1,2}(?:settings(?:\/\w+)?|base|production|prod)\.py$/.test(path))
    .map((path) => skim(inside, path))
    .join('\n')
  const fallback =
    /DJANGO_SETTINGS_MODULE['"],\s{0,5}['"]([A-Za-z_][\w]*)\.settings/.exec(skim(tree, manage))?.[1] ??
    'config'
  const server = djangoServer(project, asgi !== undefined)
  const file = server.asgi ? asgi : wsgi
  const target = file === undefined ? `${fallback}.wsgi` : moduleName(file)
  const line = server.start.replace('{target}', `${target}:application`)
  const migrate = 'python manage.py migrate --noinput'
  // SQLite lives in the container, where a release command's container does not reach: those apps migrate as
  // they start.
  const only_sqlite =
    /sqlite3/.test(settings) &&
    !/dj_database_url|environ|env\(|env\.db|postgres|mysql|config\(/i.test(settings)
  return {
    framework: 'django',
    start: only_sqlite ? `${migrate} && exec ${line}` : line,
    source: manage,
    folder,
    port: 8000,
    extra_packages: server.installed ? [] : ['gunicorn'],
    build: /STATIC_ROOT/.test(settings)
      ? "python manage.py collectstatic --noinput || echo 'collectstatic failed; static files are not collected. Give the settings it needs a default.'"
      : undefined,
    release: folder === '' ? migrate : `cd ${shellWord(folder)} && ${migrate}`,
  }
}

function djangoServer(
  project: PythonProject,
  has_asgi: boolean,
): { start: string; asgi: boolean; installed: boolean } {
  if (requires(project, 'gunicorn'))
    return { start: 'gunicorn {target} --bind 0.0.0.0:$PORT', asgi: false, installed: true }
  if (has_asgi && requires(project, 'daphne'))
    return { start: 'daphne -b 0.0.0.0 -p $PORT {target}', asgi: true, installed: true }
  if (has_asgi && requires(project, 'uvicorn'))
    return { start: 'uvicorn {target} --host 0.0.0.0 --port $PORT', asgi: true, installed: true }
  return { start: 'gunicorn {target} --bind 0.0.0.0:$PORT', asgi: false, installed: false }
}
