import { dirname, join } from 'node:path'

/** Where a thread that was built as a file of its own lies: beside the server that runs. */
export const threadFile = (name: string): string => join(dirname(process.argv[1] ?? ''), name)
