import { sep } from 'node:path'
import type { Readable, Writable } from 'node:stream'

/** A stream to print on, which may be a terminal. */
export type Stream = Writable & { readonly isTTY?: boolean; readonly columns?: number }

/** What surrounds a command: handed in, so that tests can run one without a process. */
export interface Shell {
  readonly stdin: Readable
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly interrupted: AbortSignal
}

/** How the user can call us again: npm scripts of the checkout have no `toolway` in their path. */
export const spelling = (env: Shell['env']): string =>
  env.npm_lifecycle_event === 'start' || env.npm_lifecycle_event === 'toolway' ? 'npm run -s toolway --' : 'toolway'

/** A text about files, with those below the current folder named from there. */
export const near = (text: string, cwd: string): string => text.replaceAll(cwd.endsWith(sep) ? cwd : cwd + sep, '')
