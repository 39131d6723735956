/**
 * Lets the page answer clicks and draw before what follows. Timers are not used for it: those of a page in the
 * background wait a second each.
 */
export const nextTask = (): Promise<void> =>
  new Promise((done) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      done()
    }
    port2.postMessage(null)
  })
