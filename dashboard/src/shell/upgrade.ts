import { ref } from 'vue'

/** Whether the server has other pages by now than the ones that are open. */
export const upgraded = ref(false)

const script = () =>
  document.querySelector<HTMLScriptElement>('script[type="module"][src]')?.getAttribute('src')

/** Looks, after a lost connection, whether the server was replaced meanwhile. */
export async function lookForUpgrade(): Promise<void> {
  const own = script()
  const page = await fetch('/', { headers: { accept: 'text/html' } }).then((answer) => answer.text())
  if (own && page.includes('<div id="app">') && !page.includes(own)) upgraded.value = true
}
