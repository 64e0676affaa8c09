import { readFileSync } from 'node:fs'
import { packageFile } from '../../runtime/package-paths.ts'
import { type Check, type Finding, ok, problem } from './finding.ts'

/** Whether this Node is one that Toolway is made for. */
export const nodeCheck: Check = {
  name: 'node',
  run: async () => {
    const { engines } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { engines: { node: string } }
    return nodeFinding(process.versions.node, engines.node)
  },
}

/** Compares with what the package asks for, which is always a least version. */
export function nodeFinding(running: string, wanted: string): Finding {
  const least = wanted.replace(/^>=\s*/, '')
  if (compare(running, least) >= 0) return ok(`Node ${running}; ${wanted} is needed`)
  return problem(`Node ${running} is too old; ${wanted} is needed`, `nvm install ${least.split('.')[0]}`)
}

function compare(one: string, other: string): number {
  const [a, b] = [one, other].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)))
  for (let at = 0; at < 3; at++) {
    const difference = (a?.[at] ?? 0) - (b?.[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
