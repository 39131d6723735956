import { lookForUpgrade, upgraded } from './upgrade.ts'

const FIRST_WAIT_MS = 200
const LONGEST_WAIT_MS = 15_000
let wanted = ''

/** Whether the code of a page did not arrive. */
export const isLostPage = (error: Error): boolean =>
  /dynamically imported|importing a module|unable to preload/i.test(error.message)

/** Somebody goes to a page: one that they wanted before is not opened any more. */
export function wantPage(path: string): void {
  wanted = path
}

/**
 * Opens a page whose code did not arrive: it belongs to a build that the server has no more, which is told, or it
 * got lost on the way. A browser never asks for such a part again until the whole is loaded anew.
 */
export async function openLostPage(path: string): Promise<void> {
  for (let ceiling = FIRST_WAIT_MS; ; ceiling = Math.min(LONGEST_WAIT_MS, 2 * ceiling)) {
    await new Promise((done) => setTimeout(done, ceiling / 2 + (Math.random() * ceiling) / 2))
    if (path !== wanted) return
    const answers = await lookForUpgrade().then(
      () => true,
      () => false,
    )
    if (upgraded.value || path !== wanted) return
    if (answers) return location.assign(path)
  }
}
