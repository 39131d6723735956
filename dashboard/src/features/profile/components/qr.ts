/** The dark squares of a QR code that came as SVG text: one path, read without making markup of it. */
export function pathOfQr(svg: string): { size: string; path: string } | undefined {
  const size = /viewBox="([\d .]+)"/.exec(svg)?.[1]
  const paths = [...svg.matchAll(/<path[^>]*\sd="([MmHhVvLlZz\d\s,.-]+)"/g)].map((match) => match[1])
  const path = paths.at(-1)
  return size && path ? { size, path } : undefined
}
