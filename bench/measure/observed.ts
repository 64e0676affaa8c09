import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import type { Listening } from '../targets/child.ts'
import { startToolway, type ToolwayOptions } from '../targets/toolway.ts'
import { descriptorsOf } from './process.ts'

/** What a process holds: bytes, descriptors, timers. */
export interface Held {
  readonly rss: number
  /** After the last full collection. */
  readonly heap: number
  /** Buffers outside of the heap. */
  readonly external: number
  readonly descriptors: number
  readonly timers: number
}

export interface Observed extends Listening {
  /** Measures now. With `collect`, V8 collects garbage first, which changes how much memory the process holds. */
  observe(options?: { collect?: boolean }): Promise<Held>
}

/** Starts Toolway so that it can be asked what it holds. */
export async function startObserved(options: ToolwayOptions, program?: URL): Promise<Observed> {
  // As JavaScript: loading a TypeScript module would take 20 MB of the process that is measured.
  const observer = stripTypeScriptTypes(await readFile(new URL('./observer.ts', import.meta.url), 'utf8'))
  const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(observer)}`]
  const target = await startToolway(options, { nodeArgs, ipc: true, program })
  return {
    ...target,
    async observe({ collect = false } = {}) {
      const answer = once(target.child, 'message')
      target.child.send(collect ? 'observe after collection' : 'observe')
      const [held] = (await answer) as [Omit<Held, 'descriptors'>]
      return { ...held, descriptors: descriptorsOf(target.pid) }
    },
  }
}
