/** What of our own OpenAPI document tells who may do what. */
export interface RightsDocument {
  paths: Record<string, Record<string, { summary?: string; tags?: string[]; 'x-access'?: string }>>
  tags?: { name: string; description?: string }[]
}

/** Everybody there is, from those who may least on. */
export const ROLES = [
  { key: 'reader', label: 'Viewer account', hint: 'An account that only looks, whatever its projects say.' },
  { key: 'viewer', label: 'Viewer', hint: 'A member who is a viewer of the project.' },
  { key: 'developer', label: 'Developer', hint: 'A member who is a developer of the project.' },
  { key: 'owner', label: 'Owner', hint: 'A member who is an owner of the project.' },
  {
    key: 'admin',
    label: 'Administrator',
    hint: 'Of the whole installation: an owner of every project, too.',
  },
] as const
export type Role = (typeof ROLES)[number]['key']

/** The first of the roles, in their order, that the API's word for an access lets in. */
const LEAST: Record<string, Role> = {
  public: 'reader',
  self: 'reader',
  viewer: 'reader',
  member: 'viewer',
  developer: 'developer',
  owner: 'owner',
  admin: 'admin',
}
const rankOf = (role: Role): number => ROLES.findIndex(({ key }) => key === role)
/** Whether a role may do what needs this access. A word that is not known is left to administrators. */
export const roleMay = (role: Role, access: string): boolean =>
  rankOf(role) >= rankOf(LEAST[access] ?? 'admin')

export interface Right {
  id: string
  summary: string
  access: string
}
export interface RightsGroup {
  name: string
  rights: Right[]
  /** How many of them each role has. */
  counts: Record<Role, number>
}

/** All that can be done, in the groups of the API, narrowed to what holds a text. */
export function groupsOf({ paths, tags = [] }: RightsDocument, text: string): RightsGroup[] {
  const wanted = text.trim().toLowerCase()
  const groups = new Map<string, Right[]>(tags.map(({ name }) => [name, []]))
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { summary = path, tags: [tag = 'other'] = [], 'x-access': access }] of Object.entries(
      operations,
    )) {
      if (!access || !`${summary} ${tag}`.toLowerCase().includes(wanted)) continue
      groups.set(tag, [...(groups.get(tag) ?? []), { id: `${method} ${path}`, summary, access }])
    }
  return [...groups]
    .filter(([, rights]) => rights.length > 0)
    .map(([name, rights]) => ({
      name,
      rights,
      counts: Object.fromEntries(
        ROLES.map(({ key }) => [key, rights.filter(({ access }) => roleMay(key, access)).length]),
      ) as Record<Role, number>,
    }))
}
