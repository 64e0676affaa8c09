import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { loadPlugins, type Plugins, PluginsRefused } from './index.ts'
import type { PluginOptions } from './isolated/child-process.ts'

/** The `import` of Node itself: the one in tests is that of their runner, which knows no hooks. */
const source: string = 'data:text/javascript,export default (url) => import(url)'
const native: { default: PluginOptions['load'] } = await import(source)

export interface PluginFolder extends Folder {
  readonly log: KeptLog
  /** Writes files, by their paths in the folder. */
  write(files: Readonly<Record<string, string>>): Promise<void>
  load(...paths: readonly string[]): Promise<Plugins>
  /** What is wrong with them. */
  problems(...paths: readonly string[]): Promise<readonly string[]>
}

const sources = {
  library: new URL('library.ts', import.meta.url),
  child: new URL('isolated/child.ts', import.meta.url),
}

/** A folder for plugins, outside of the project. */
export async function pluginFolder({
  clock = systemClock,
  modules = sources,
  registerProcess,
}: {
  clock?: Clock
  modules?: PluginOptions['modules']
  registerProcess?: PluginOptions['registerProcess']
} = {}): Promise<PluginFolder> {
  const folder = await temporaryFolder()
  const log = createKeptLog()
  const load = (...paths: readonly string[]) =>
    loadPlugins(
      paths.map((path) => join(folder.path, path)),
      { modules, registerProcess, clock, log, ...(native.default && { load: native.default }) },
    )
  return {
    ...folder,
    log,
    async write(files) {
      for (const [name, text] of Object.entries(files)) {
        await mkdir(dirname(join(folder.path, name)), { recursive: true })
        await writeFile(join(folder.path, name), text, { mode: 0o644 })
      }
    },
    load,
    async problems(...paths) {
      try {
        await using _plugins = await load(...paths)
        return []
      } catch (thrown) {
        if (thrown instanceof PluginsRefused) return thrown.problems.map((text) => text.replaceAll(folder.path, ''))
        throw thrown
      }
    },
  }
}

/** The source of a tool that answers with a text. */
export const toolSource = (name: string, answer = `'${name}'`, more = ''): string => `
import { defineTool } from 'toolway'
import * as z from 'zod'
const input: z.ZodObject = z.object({ word: z.string().optional().describe('A word.') })
export const ${name} = defineTool({ name: '${name}', description: 'Says ${name}.', input, ${more} run: ({ word }, context) => ${answer} })
`
