/**
 * Loaded on its own, before everything else, and without an import: when a part of the page does not arrive (a
 * server that restarts, a network that changes), the page is loaded again as soon as the server answers. Nothing
 * was typed yet, and a page that stays empty says nothing.
 */
const FIRST_WAIT_MS = 400
const LONGEST_WAIT_MS = 15_000
const TRIES = 'page-tries'
let is_trying = false

/** Waits twice as long each time, with jitter: a server that comes back is not met by everybody at once. */
function wait(tries: number): Promise<void> {
  const ceiling = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries)
  return new Promise((resolve) => setTimeout(resolve, ceiling / 2 + (Math.random() * ceiling) / 2))
}

async function loadAgain(): Promise<void> {
  if (is_trying) return
  is_trying = true
  document.getElementById('late')?.removeAttribute('hidden')
  let tries = Number(sessionStorage.getItem(TRIES) ?? 0)
  for (;;) {
    await wait(tries)
    tries += 1
    const answers = await fetch('/healthz').then(
      ({ ok }) => ok,
      () => false,
    )
    if (answers) break
  }
  sessionStorage.setItem(TRIES, String(tries))
  location.reload()
}

/** The script of a browser's extension may fail as it likes. */
function onError({ target }: Event): void {
  if (target instanceof HTMLScriptElement && target.src.startsWith(`${location.origin}/`)) void loadAgain()
}

// Errors of elements do not bubble. That of a module also tells of what it imports.
addEventListener('error', onError, true)
addEventListener('page-incomplete', () => void loadAgain())
addEventListener('page-complete', () => {
  removeEventListener('error', onError, true)
  sessionStorage.removeItem(TRIES)
})
