/** Every endpoint below `routes/api`, listed by `build-module.ts` at build time. */
declare module '#endpoints' {
  export const endpoints: {
    path: string
    method: string
    load(): Promise<{ default: import('./endpoint.ts').EndpointHandler }>
  }[]
}

/** The migrations of `storage/migrations`, put into the bundle by `build-module.ts`. */
declare module '#migrations' {
  export const migrations: [name: string, sql: string][]
}

/** Where the server runs from, put into the bundle by `dashboard/build-module.ts`: the pages lie near it. */
declare module '#dashboard' {
  export const origin: string
}

/** The templates of `templates/`, checked and put into the bundle by `build-module.ts`. */
declare module '#templates' {
  export function readShelf(): Promise<import('#server/templates/folder').TemplateFolder[]>
}

/** The API document, made from the definitions of the endpoints by `build-module.ts`. */
declare module '#api-document' {
  export const documentTexts: import('#server/http/openapi-text').DocumentTextReaders
}
