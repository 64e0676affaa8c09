import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { writableByOthers } from './trusted.ts'

const isModule = (name: string) => /^[^._].*\.[cm]?[jt]s$/.test(name) && !/\.(?:d|test|spec)\.[cm]?[jt]s$/.test(name)
const beginnings = ['index.ts', 'index.mts', 'index.js', 'index.mjs']

/** The modules of one place in `native.plugins`: the file; the index of a folder, or each module in it. */
export function findModules(path: string): { readonly files: readonly string[] } | { readonly problem: string } {
  if (!existsSync(path)) return { problem: `There is no plugin at ${path}; mend native.plugins.` }
  const problem = writableByOthers(path)
  if (problem !== undefined) return { problem: `The plugin ${path} is refused: ${problem}` }
  if (!statSync(path).isDirectory()) return { files: [path] }
  const names = readdirSync(path)
  const index = beginnings.find((name) => names.includes(name))
  const files = (index === undefined ? names.filter(isModule).sort() : [index]).map((name) => join(path, name))
  if (files.length === 0) return { problem: `There is no module in the folder ${path}; mend native.plugins.` }
  for (const file of files) {
    const inside = writableByOthers(file)
    if (inside !== undefined) return { problem: `The plugin ${file} is refused: ${inside}` }
  }
  return { files }
}
