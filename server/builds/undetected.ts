import { DetectionError, type SourceTree } from './plan.ts'
import { nearestFiles } from './nearest-files.ts'
import { filesIn, hasFolder } from './tree-queries.ts'

const COMPOSE_FILES = ['compose.yaml', 'compose.yml', 'docker-compose.yml', 'docker-compose.yaml']
const MAX_FOLDERS_TRIED = 60

/**
 * The error for a folder that no stack knows: what it seems to be, which sub-folder would work, what was
 * looked for.
 */
export function undetected(
  tree: SourceTree,
  stackOf: (tree: SourceTree) => string | undefined,
): DetectionError {
  const looked_for = nearestFiles(tree)
  if (tree.files().length === 0) {
    return new DetectionError(
      'The repository has no files.',
      'Push a commit to the branch, or choose another branch or base directory.',
      looked_for,
    )
  }
  const compose = COMPOSE_FILES.find((file) => tree.has(file))
  if (compose !== undefined) {
    return new DetectionError(
      `The repository has a ${compose}, but nothing else that says how to build one app.`,
      'Create the app with the source `compose`, or set the base directory to the folder of one service.',
      looked_for,
    )
  }
  const folders = buildableFolders(tree, stackOf)
  if (folders.length > 0) {
    const listed = folders
      .slice(0, 6)
      .map(({ folder, stack }) => `${folder} (${stack})`)
      .join(', ')
    return new DetectionError(
      'The root of the repository has no app.',
      `Set the base directory to one of its apps: ${listed}.`,
      looked_for,
    )
  }
  return new DetectionError(
    'No stack was recognised in the repository.',
    'Add a Dockerfile, or a Procfile with a line `web: <command>`, or set the base directory if the app is in a sub-folder.',
    looked_for,
  )
}

function buildableFolders(
  tree: SourceTree,
  stackOf: (tree: SourceTree) => string | undefined,
): { folder: string; stack: string }[] {
  const folders = new Set<string>()
  for (const path of tree.files()) {
    const parts = path.split('/')
    for (let depth = 1; depth <= 2 && depth < parts.length; depth++)
      folders.add(parts.slice(0, depth).join('/'))
  }
  const found: { folder: string; stack: string }[] = []
  const ordered = [...folders]
    .filter((folder) => !folder.startsWith('.'))
    .sort((a, b) => a.split('/').length - b.split('/').length)
  for (const folder of ordered.slice(0, MAX_FOLDERS_TRIED)) {
    if (found.some((other) => folder.startsWith(`${other.folder}/`)) || !hasFolder(tree, folder)) continue
    const inside = tree.sub(folder)
    const stack = filesIn(inside).includes('Dockerfile') ? 'dockerfile' : stackOf(inside)
    if (stack !== undefined) found.push({ folder, stack })
  }
  return found
}
