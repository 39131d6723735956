import type { paths } from '@/api/generated/schema'

export type NewAppBody = paths['/api/apps']['post']['requestBody']['content']['application/json']

/** Fields of the form, all of them text. */
export const EMPTY = {
  source: 'git' as 'git' | 'image' | 'dockerfile' | 'compose' | 'upload',
  git_url: '',
  branch: '',
  base_directory: '',
  image: '',
  dockerfile: '',
  compose: '',
  name: '',
  port: '' as string | number,
  project_id: null as string | null,
}
export type NewAppForm = typeof EMPTY

export const SOURCES = [
  { value: 'git', label: 'Git repository' },
  { value: 'image', label: 'Container image' },
  { value: 'dockerfile', label: 'Dockerfile, written here' },
  { value: 'compose', label: 'Compose file, written here' },
  { value: 'upload', label: 'Folder of your machine' },
]

const given = <Key extends string>(key: Key, text: string | null) => {
  const value = text?.trim()
  return value ? ({ [key]: value } as Record<Key, string>) : {}
}

const OTHER_SOURCES = {
  image: ({ image }: NewAppForm) => given('image', image),
  dockerfile: ({ dockerfile }: NewAppForm) => ({ dockerfile }),
  compose: ({ compose }: NewAppForm) => ({ compose }),
  upload: () => ({ source: 'upload' as const }),
}

/** What of the form is sent. */
export function bodyOf(form: NewAppForm): NewAppBody {
  const source =
    form.source === 'git'
      ? {
          ...given('git_url', form.git_url),
          ...given('branch', form.branch),
          ...given('base_directory', form.base_directory),
        }
      : OTHER_SOURCES[form.source](form)
  const port = String(form.port).trim()
  return {
    name: form.name.trim(),
    ...source,
    ...(port ? { port: Number(port) } : {}),
    ...given('project_id', form.project_id),
  }
}
