/** The shapes that every endpoint shares; they live in the kernel, because domains use them too. */
export * from '#server/kernel/schemas'
