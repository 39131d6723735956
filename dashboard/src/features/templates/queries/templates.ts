import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'

export type Template = Schemas['Template']

export interface TemplateSearch {
  page: number
  q: string
  category: string | null
}

export const useTemplates = (search: MaybeRefOrGetter<TemplateSearch>) =>
  useRead(
    ['template_catalog'],
    () => ['templates', toValue(search)],
    (signal) => {
      const { page, q, category } = toValue(search)
      const query = { page, per_page: 24, ...(q ? { q } : {}), ...(category ? { category } : {}) }
      return api.GET('/api/templates', { params: { query }, signal })
    },
    { keep: true },
  )

export const useCategories = () =>
  useRead(
    ['template_catalog'],
    () => ['template-categories'],
    (signal) => wholeList((query) => api.GET('/api/templates/categories', { params: { query }, signal })),
  )

/** The compose file of a template, once somebody wants to read it. */
export const useCompose = (slug: MaybeRefOrGetter<string>, wanted: MaybeRefOrGetter<boolean>) =>
  useRead(
    ['template_catalog'],
    () => ['template-compose', toValue(slug)],
    (signal) =>
      api.GET('/api/templates/{slug}/compose', { params: { path: { slug: toValue(slug) } }, signal }),
    { enabled: wanted },
  )

export const useTemplate = (slug: MaybeRefOrGetter<string>) =>
  useRead(
    [],
    () => ['template', toValue(slug)],
    (signal) => api.GET('/api/templates/{slug}', { params: { path: { slug: toValue(slug) } }, signal }),
  )
