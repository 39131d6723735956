import type { Component } from 'vue'
import type { RouteParams, RouteRecordRaw } from 'vue-router'

declare module 'vue-router' {
  interface RouteMeta {
    /** Asks for what the page shows, before its code is there. */
    ahead?(params: RouteParams): void
  }
}

/** Groups of the sidebar, from the top. */
export const GROUPS = ['', 'Deliver', 'Data', 'Watch', 'Connect', 'Server'] as const

/** An entry of the sidebar and the palette. */
export interface Entry {
  label: string
  to: string
  icon: Component
  group: (typeof GROUPS)[number]
  /** Place within the group. */
  order: number
  /** Pressed after `g`, it leads there. */
  key?: string
  /** Whether the user may see it; everybody when absent. */
  visible?(): boolean
}
/** Something to do from anywhere, for the palette. */
export interface Command {
  label: string
  to: string
  icon: Component
  visible?(): boolean
}
/** A page about an app or a project, which a feature adds to those that it has. */
export interface Tab {
  label: string
  /** Last part of the address; empty for the first one of an app. */
  path: string
  order: number
  component: () => Promise<Component>
  /** Asks for what the page shows, before its code is there. */
  ahead?(params: RouteParams): void
}
/** A group of pages. Its folder below `features/` is all that has to be added. */
export interface Feature {
  routes: RouteRecordRaw[]
  entries?: Entry[]
  commands?: Command[]
  app_tabs?: Tab[]
  project_tabs?: Tab[]
  /** Pages of single things that the search finds, by their kind. */
  resources?: Record<string, (id: string) => string>
}
export const defineFeature = (feature: Feature): Feature => feature

export const features: Feature[] = []
export const entries = (): Entry[] =>
  features
    .flatMap((feature) => feature.entries ?? [])
    .filter((entry) => entry.visible?.() ?? true)
    .sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group) || a.order - b.order)
const inOrder = (tabs: Tab[]): Tab[] => tabs.sort((a, b) => a.order - b.order)
export const appTabs = (): Tab[] => inOrder(features.flatMap((feature) => feature.app_tabs ?? []))
export const projectTabs = (): Tab[] => inOrder(features.flatMap((feature) => feature.project_tabs ?? []))
export const commands = (): Command[] =>
  features.flatMap((feature) => feature.commands ?? []).filter((one) => one.visible?.() ?? true)

/** An app or a project whose pages are open, by its address. */
const OPEN = /^\/(apps|projects)\/([a-z]+_[0-9a-z]+)(?:\/|$)/
/** Pages about the app or the project that is open, for the palette. */
export function pagesHere(path: string): { label: string; to: string; of: string }[] {
  const [, group, id] = OPEN.exec(path) ?? []
  if (!group) return []
  const of = `/${group}/${id}`
  return (group === 'apps' ? appTabs() : projectTabs()).map((tab) => ({
    label: tab.label,
    to: `${of}${tab.path && `/${tab.path}`}`,
    of,
  }))
}

/** The page of something that was found, if its kind has one. */
export function pageOf(kind: string, id: string): string | undefined {
  for (const feature of features) {
    const page = feature.resources?.[kind]
    if (page) return page(id)
  }
  return undefined
}
