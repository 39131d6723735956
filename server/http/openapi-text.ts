/** The API document in both forms, for an installation that is not known yet. */
export interface DocumentTexts {
  json: string
  yaml: string
}
/** Where the texts of the build lie, each read when it is asked for. */
export type DocumentTextReaders = { [Form in keyof DocumentTexts]: () => Promise<string> }

/** Stands for the address of an installation in what the build makes. */
export const ANY_ADDRESS = 'https://address-of-this-installation.invalid'

/** The document as a client of this installation reads it. A JSON text says the same in YAML. */
export function documentFor(text: string, form: keyof DocumentTexts, public_url: string | undefined): string {
  const address = JSON.stringify(public_url ?? '/')
  return text.replace(form === 'json' ? JSON.stringify(ANY_ADDRESS) : ANY_ADDRESS, () => address)
}
