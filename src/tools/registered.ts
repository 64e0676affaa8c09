import type { Tool } from './define.ts'
import { builtInNames } from './native/names.ts'

/** Checks the tools that a program registers: throws a TypeError that names the first one that cannot be served. */
export function registeredTools(tools: readonly Tool[]): readonly Tool[] {
  const names = new Set<string>()
  for (const tool of tools) {
    if (typeof tool?.run !== 'function' || typeof tool.name !== 'string') {
      throw new TypeError('Each of the tools must be made by defineTool.')
    }
    const { name } = tool
    if (builtInNames.includes(name)) {
      throw new TypeError(`The tool "${name}" has the name of a tool that is built into Toolway: choose another name.`)
    }
    if (names.has(name)) throw new TypeError(`Two tools are named "${name}": rename one of them.`)
    if (tool.isolated) throw new TypeError(`The tool "${name}" cannot be isolated: only tools of plugins can.`)
    names.add(name)
  }
  return tools
}
