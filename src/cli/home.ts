import { sep } from 'node:path'
import { homeOf } from '../core/home.ts'
import type { Shell } from './shell.ts'

/** A path as people write it: from the current folder, or from home. */
export function short(path: string, { cwd, env }: Pick<Shell, 'cwd' | 'env'>): string {
  const home = homeOf(env)
  if (cwd !== home && path.startsWith(cwd + sep)) return path.slice(cwd.length + 1)
  return inTilde(path, home)
}

/** `~/…` where a path lies at home. */
export const inTilde = (path: string, home: string): string =>
  path.startsWith(home + sep) ? `~/${path.slice(home.length + 1).replaceAll(sep, '/')}` : path
