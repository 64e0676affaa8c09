import type { Clock } from '../../core/clock.ts'
import { deadline, waitFor } from '../../core/deadline.ts'
import type { Tool } from '../define.ts'
import type { Sink } from '../sinks/sink.ts'
import { exportedBy } from './exported.ts'
import { filesOf, registerPluginHooks, taggedUrl } from './hooks.ts'
import { loadProblem } from './refused.ts'
import { noteFiles, tagFor } from './tags.ts'

export interface LoadedModule {
  readonly file: string
  readonly tools: readonly Tool[]
  readonly sinks: readonly Sink[]
  /** All that it was loaded from. */
  readonly files: readonly string[]
  readonly problem?: string
}

export interface LoadOptions {
  readonly modules: { readonly library: URL }
  readonly clock: Clock
  load?(url: string): Promise<Record<string, unknown>>
}

/** A module that waits for something at its top would hold the configuration up for ever. */
const maxMs = 10_000

/** Loads one module of a plugin and looks at what it exports. Whatever is wrong with it is told, not thrown. */
export async function loadModule(file: string, options: LoadOptions): Promise<LoadedModule> {
  const { modules, clock, load = (url) => import(url) } = options
  registerPluginHooks(modules.library)
  const tag = tagFor(file)
  const url = taggedUrl(file, tag)
  using limit = deadline(clock, maxMs, () => new Error(`it was not ready after ${maxMs / 1000} s (a fixed limit)`))
  try {
    const { problem, ...offered } = exportedBy(await waitFor(load(url), limit.signal))
    const told =
      problem === undefined ? {} : { problem: `${file} ${problem}; export what defineTool or defineSink gives.` }
    return { file, ...offered, files: filesOf(tag), ...told }
  } catch (thrown) {
    return { file, tools: [], sinks: [], files: filesOf(tag), problem: loadProblem(file, thrown) }
  } finally {
    noteFiles(file)
  }
}
