import { cpus } from 'node:os'

/** CPU cores of this machine. Counted once: the system reads the clock of each core to answer. */
export const CORES = cpus().length
