const TRIES = 60

/**
 * Waits until the page is tall enough to stand at this place again, a second at most: a long list draws its
 * beginning first.
 * @param top pixels from the top of the page.
 */
export async function untilTall(top: number): Promise<void> {
  const isTall = () => document.documentElement.scrollHeight - window.innerHeight >= top
  for (let tries = 0; tries < TRIES && !isTall() && !document.hidden; tries += 1)
    await new Promise((drawn) => requestAnimationFrame(drawn))
}
