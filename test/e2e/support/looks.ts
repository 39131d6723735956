import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Look, Visitor } from './browser.ts'

/**
 * Every size and theme that a page has to hold in. What axe finds depends on the size or on the theme, so that two
 * of the four, with both of each, find what all would; whether a page overflows depends on the size alone. The other
 * two are for pictures.
 */
const LOOKS: readonly (Look & { examined: boolean })[] = [
  { width: 1280, height: 800, scheme: 'light', examined: true },
  { width: 375, height: 740, scheme: 'light', examined: false },
  { width: 375, height: 740, scheme: 'dark', examined: true },
  { width: 1280, height: 800, scheme: 'dark', examined: false },
]
/** Where pictures of every page in every look go, for somebody to look at; none are taken without it. */
const PICTURES = process.env.DASHBOARD_PICTURES

/**
 * Waits until a change of the look is drawn and no colour is on its way any more: halfway between two themes a
 * button has neither's contrast.
 */
const settled = (page: Page) =>
  page.evaluate(async () => {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    const changes = document.getAnimations().filter((one) => one instanceof CSSTransition)
    // A transition that another one takes the place of is rejected.
    await Promise.all(changes.map(({ finished }) => finished.catch(() => undefined)))
  })

/**
 * Looks at the page that is open in every size and theme, without loading it again; answers what is wrong.
 * @param who names the pictures.
 * @param thorough whether axe examines it, too.
 */
export async function lookAt(
  { page, barriers }: Visitor,
  who: string,
  path: string,
  thorough: boolean,
): Promise<string[]> {
  const problems: string[] = []
  const looks = PICTURES ? LOOKS : LOOKS.filter(({ examined }) => examined)
  for (const { width, height, scheme, examined } of looks) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme: scheme })
    await settled(page)
    const overhang = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    const look = `${width} px, ${scheme}`
    if (overhang > 0) problems.push(`${look}: scrolls sideways by ${overhang} px`)
    if (thorough && examined) problems.push(...(await barriers()).map((barrier) => `${look}: ${barrier}`))
    if (!PICTURES) continue
    mkdirSync(PICTURES, { recursive: true })
    const name = `${path.replace(/\W+/g, '-').replace(/^-|-$/g, '') || 'home'}-${who}-${width}-${scheme}.png`
    await page.screenshot({ path: join(PICTURES, name), fullPage: true })
  }
  return problems
}
