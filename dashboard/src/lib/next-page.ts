/** Where somebody wanted to go before they had to log in: a page of ours, whatever the address says. */
export const nextPage = (next: unknown): string =>
  typeof next === 'string' && /^\/(?![\t\n\r]*[/\\])/.test(next) ? next : '/'
