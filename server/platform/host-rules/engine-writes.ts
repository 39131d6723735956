import { setTimeout as wait } from 'node:timers/promises'
import { eachLine } from '#server/platform/engine/unseen'
import { diffOf, LAYER, type OpenFile } from './engine-layers.ts'
import { childrenOf, killProcess } from './engine-process.ts'

/** The engine gives a file up at the next piece that it writes. */
const TRIES = 50
const WAIT_MS = 100
const LIMIT_MS = 60_000
/** The program that the engine starts of itself to unpack an archive into a layer, and where to. */
const UNPACKS = new RegExp(`^docker-untar\\0.*/(?:overlay2/${LAYER}/|tmp/buildkit-mount)`)

/** Sets or takes away that nobody may write to a file of a layer, not even who has it open. */
const mark = async (flag: '+i' | '-i', { root, layers, inode }: OpenFile): Promise<void> => {
  for (const layer of layers)
    await eachLine(
      [
        ...['find', diffOf(root, layer), '-xdev', '-type', 'f', '-inum', String(inode)],
        ...['-execdir', 'chattr', flag, '{}', '+'],
      ],
      LIMIT_MS,
      () => {},
    )
}

/**
 * Ends what the engine writes into layers for builds: a copy and an archive go on to their end, also when the build
 * was given up or the disk has no more room.
 * @param openFiles what it has open, asked again until it has given these files up.
 * @returns whether there was anything to end.
 */
export async function endWrites(
  pid: number,
  files: readonly OpenFile[],
  openFiles: () => Promise<readonly OpenFile[]>,
): Promise<boolean> {
  try {
    for (const file of files) await mark('+i', file)
    for (let tries = 0; tries < TRIES; tries += 1) {
      const open = new Set((await openFiles()).map(({ inode, writes }) => writes && inode))
      if (!files.some(({ inode }) => open.has(inode))) break
      await wait(WAIT_MS)
    }
  } finally {
    // The engine could not remove it.
    for (const file of files) await mark('-i', file)
  }
  const unpacking = (await childrenOf(pid)).filter(({ command }) => UNPACKS.test(command))
  for (const child of unpacking) killProcess(child.pid)
  return files.length > 0 || unpacking.length > 0
}
