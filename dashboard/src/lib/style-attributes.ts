let is_done = false

/**
 * Lets a library colour its text: it writes `style` attributes of spans, which the page's policy refuses. From now
 * on spans take the same text through their style object, which the policy allows.
 */
export function styleSpansByObject(): void {
  if (is_done) return
  is_done = true
  const create = document.createElement.bind(document)
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const element = create(name, options)
    if (name !== 'span') return element
    const setAttribute = element.setAttribute.bind(element)
    element.setAttribute = (key, value) => {
      if (key === 'style') element.style.cssText = value
      else setAttribute(key, value)
    }
    return element
  }) as typeof document.createElement
}
