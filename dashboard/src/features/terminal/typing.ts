/** Characters under way that the program has not taken: the server holds twice as many. */
const MOST_UNTAKEN = 100_000
const PIECE = 16_000

/** Sends what is typed or pasted at the pace at which the program takes it. */
export function createTyping(send: (text: string) => void) {
  let waiting = ''
  let sent = 0
  let taken = 0
  const pump = () => {
    while (waiting && sent - taken < MOST_UNTAKEN) {
      const piece = waiting.slice(0, PIECE)
      waiting = waiting.slice(piece.length)
      sent += piece.length
      send(piece)
    }
  }
  return {
    type(text: string) {
      waiting += text
      pump()
    },
    /** The program has taken so many characters of all that was sent. */
    taken(chars: number) {
      taken = chars
      pump()
    },
  }
}
