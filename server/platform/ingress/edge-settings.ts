/** What the whole edge is made with. */
export interface EdgeSettings {
  http_port: number
  https_port: number
  /** Also listen on IPv6. */
  ipv6: boolean
  /** Addresses and networks whose forwarding headers are believed. */
  trusted_proxies: string[]
  /** The user that Portreeve runs as, who may read the log of requests. */
  owner_uid: number
}
