import { type Component, type ComputedRef, onBeforeUnmount, shallowReactive } from 'vue'

/** Something to do with what the open page is about. */
export interface CommandHere {
  label: string
  icon: Component
  run(): void
}

const offered = shallowReactive(new Set<ComputedRef<readonly CommandHere[]>>())

/** Lets the palette do what a page can, as long as the page is open; call it while the page is set up. */
export function offerCommands(list: ComputedRef<readonly CommandHere[]>): void {
  offered.add(list)
  onBeforeUnmount(() => offered.delete(list))
}

export const commandsHere = (): CommandHere[] => [...offered].flatMap((list) => list.value)
