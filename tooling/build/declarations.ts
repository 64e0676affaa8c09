import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const relative = /((?:from |import\()['"])(\.[^'"]+)\.ts(?=['"])/g

/**
 * Keeps the declarations that users get to from `index.d.ts`, and removes all others. They name one another as the
 * published modules would: not every tool knows what to make of `.ts`.
 */
export function keepReachable(folder: string): void {
  const reached = new Set<string>()
  const visit = (file: string): void => {
    if (reached.has(file)) return
    reached.add(file)
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(join(folder, file), text.replace(relative, '$1$2.js'))
    for (const [, , path] of text.matchAll(relative)) visit(normalize(join(dirname(file), `${path}.d.ts`)))
  }
  visit('index.d.ts')
  for (const file of globSync('**/*.d.ts', { cwd: folder })) if (!reached.has(file)) rmSync(join(folder, file))
}
