import { chown, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Identity } from './work-directory.ts'

export type ObjectFormat = 'sha1' | 'sha256'

/** All that `git init` writes and that a fetch and a checkout need. */
const config = (format: ObjectFormat): string =>
  [
    '[core]',
    `\trepositoryformatversion = ${format === 'sha1' ? 0 : 1}`,
    '\tfilemode = true',
    '\tbare = false',
    ...(format === 'sha1' ? [] : ['[extensions]', `\tobjectformat = ${format}`]),
    '',
  ].join('\n')

/**
 * Before all attributes of the repository itself. A file full of `$Id$` would be written twelve times as large as
 * it is; nobody expects that of a deployment.
 */
const ATTRIBUTES = '* !ident\n'

/**
 * Makes an empty repository in a folder, whatever an earlier attempt left there. Written by ourselves: a
 * process for three small files would take a tenth of the time of a clone.
 */
export async function createRepository(
  directory: string,
  format: ObjectFormat,
  identity: Identity | undefined,
): Promise<void> {
  const git = join(directory, '.git')
  const own = async (path: string) => {
    if (identity) await chown(path, identity.uid, identity.gid)
  }
  await rm(git, { recursive: true, force: true })
  await mkdir(git)
  const folders = ['objects', 'refs', 'info'].map(async (name) => {
    await mkdir(join(git, name))
    await own(join(git, name))
  })
  await Promise.all(folders)
  const texts = {
    HEAD: 'ref: refs/heads/main\n',
    config: config(format),
    'info/attributes': ATTRIBUTES,
  }
  const files = Object.entries(texts).map(async ([name, content]) => {
    await writeFile(join(git, name), content)
    await own(join(git, name))
  })
  await Promise.all(files)
  await own(git)
}
