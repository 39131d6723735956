/** Data directories of all kernels that tests of this process made. */
export const kernel_folders = new Set<string>()
