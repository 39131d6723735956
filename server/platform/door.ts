/** The socket on which the HTTP server of this process takes connections. */
export interface Door {
  /** Whether only programs of this machine reach it. */
  readonly is_narrow: boolean
  /**
   * Takes connections of this machine alone, or again those from where it took them at the start. Connections
   * that are open stay open.
   */
  set(narrow: boolean): Promise<void>
}
