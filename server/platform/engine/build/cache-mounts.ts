/** What may stand between the flags of an instruction: white space, and ends of lines that go on. */
const GAP = '(?:[ \\t]|[\\\\`][ \\t]*\\r?\\n)+'
/** `RUN` at the beginning of a line, with its flags. */
export const FLAGS_OF_RUN = new RegExp(`^[ \\t]*(?:ONBUILD[ \\t]+)*RUN(?:${GAP}--\\S+)+`, 'gim')
export const CACHE_MOUNT = new RegExp(`(${GAP})--mount=(?:\\S*,)?type=cache(?:,\\S*)?(?!\\S)`, 'gi')

/**
 * A Dockerfile without its cache mounts, for a builder that knows none: they only save time. They are whole words
 * among the flags of `RUN`, and nothing else is touched. It is another text all the same, in which instructions may
 * begin and end elsewhere: whoever checks the one has to check the other as well.
 */
export const withoutCacheMounts = (dockerfile: string): string =>
  dockerfile.replace(FLAGS_OF_RUN, (flags) => flags.replace(CACHE_MOUNT, '$1'))
