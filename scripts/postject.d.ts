/** The package comes without types. */
declare module 'postject' {
  /** Writes `contents` into the executable `file` as a section of that name, and turns the fuse. */
  export function inject(
    file: string,
    name: string,
    contents: Uint8Array,
    options: { sentinelFuse: string },
  ): Promise<void>
}
