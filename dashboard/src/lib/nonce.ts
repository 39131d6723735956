/** The nonce of this page, which the server made for this one answer. */
export const pageNonce = (): string =>
  document.querySelector<HTMLElement>('script[nonce], link[nonce], meta[property="csp-nonce"]')?.nonce ?? ''

/** Stamps style elements that libraries create, before they are put into the page and judged. */
export function stampStyles(): void {
  const nonce = pageNonce()
  const create = document.createElement.bind(document)
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const element = create(name, options)
    if (name.toLowerCase() === 'style') element.nonce = nonce
    return element
  }) as typeof document.createElement
}
