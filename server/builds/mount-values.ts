/** Values that a flag `--mount=…`, a line of CSV, gives to fields of these names; none where it is another flag. */
export const mountValues = (flag: string, ...names: readonly string[]): string[] =>
  (/^--mount=(.*)$/is.exec(flag)?.[1]?.split(',') ?? []).flatMap((field) => {
    const [, name = '', value = ''] = /^\s*([a-z]+)\s*=(.*)$/is.exec(field) ?? []
    return names.includes(name.toLowerCase()) ? [value] : []
  })
