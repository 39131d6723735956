import { createHash } from 'node:crypto'

/** The folder of an installation names its edge. */
export const edgeHash = (directory: string): string =>
  createHash('sha256').update(directory).digest('hex').slice(0, 12)

/** Name of the container; `edge_name` of scripts/shell/run.sh says the same. */
export const edgeName = (directory: string): string => `portreeve-edge-${edgeHash(directory)}`
