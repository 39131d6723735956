/** What sealed columns of webhooks are bound to. */
export const configContext = (id: string) => `webhooks/config/${id}`
export const tokenContext = (id: string) => `webhooks/token/${id}`
export const secretContext = (id: string) => `webhooks/secret/${id}`
