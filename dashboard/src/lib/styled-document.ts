/**
 * The document for a library that writes `style` attributes, which the page's policy refuses. Its elements take
 * the same text through their style object, which the policy allows.
 */
export function styledDocument(): Document {
  const createElement = (name: string, options?: ElementCreationOptions): HTMLElement => {
    const element = document.createElement(name, options)
    const setAttribute = element.setAttribute.bind(element)
    element.setAttribute = (key, value) => {
      if (key === 'style') element.style.cssText = value
      else setAttribute(key, value)
    }
    return element
  }
  return new Proxy(document, {
    get(target, key) {
      if (key === 'createElement') return createElement
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
