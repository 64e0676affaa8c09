import { argumentRestorer, portableDefinition, portableName } from '../core/portable/portable-tool.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import type { Item } from './snapshot.ts'

/** The portable forms of the tools that a caller sees (W8). */
export interface PortableItems {
  /** Converts an item. The same item always has the same form. */
  readonly form: (item: Item) => Item
  /** The tools whose portable name is not their served one. */
  readonly renamed: ReadonlyMap<string, Item>
}

/** `isTaken` tells which names are served, so that no portable name hides another tool. */
export function createPortableItems(tools: readonly Item[], isTaken: (name: string) => boolean): PortableItems {
  const renamed = new Map<string, Item>()
  const names = new Map<string, string>()
  for (const item of tools) {
    let name = portableName(item.name)
    if (name === item.name) continue
    for (let count = 2; isTaken(name) || renamed.has(name); count++)
      name = `${portableName(item.name).slice(0, 60)}_${count}`
    renamed.set(name, item)
    names.set(item.name, name)
  }
  return { form: memoizeByObject((item) => portableItem(item, names.get(item.name) ?? item.name)), renamed }
}

/** Like the item, built on first use. */
function portableItem(item: Item, name: string): Item {
  const { entry } = item
  const definition = () => portableDefinition({ ...item.definition, name }, entry.definition)
  return {
    name,
    entry,
    isPortable: true,
    get definition() {
      return definition()
    },
    get json() {
      return JSON.stringify(definition())
    },
    get restore() {
      return argumentRestorer(entry.definition)
    },
  }
}
