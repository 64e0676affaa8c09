import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Runtime } from '../runtime.ts'
import { bwrapCommand, type Sight, sightOf } from './bwrap.ts'
import { librariesOf } from './libraries.ts'
import { limited } from './limited.ts'
import type { Place } from './place.ts'
import { processChild } from './process-child.ts'
import { seccompFilter } from './seccomp.ts'
import { workerChild } from './worker-child.ts'

const MiB = 1024 * 1024
/** What Node itself takes: most of it is set aside for compiled code and never used. */
const nodeBytes = 704 * MiB
/** The engine's memory, its image, and what comes of packing that. */
const copies = 3

/** The engine's package: its code, and the module that Node compiles. */
const quickjs = dirname(createRequire(import.meta.url).resolve('quickjs-wasi/quickjs.wasm'))
const wasm = 'quickjs.wasm'

/** How Node is started, wherever its files are. */
const nodeArguments = (folders: readonly string[]) => [
  '--permission',
  ...folders.map((folder) => `--allow-fs-read=${folder}`),
  '--disallow-code-generation-from-strings',
  '--disable-warning=ExperimentalWarning',
  '--no-addons',
  '--v8-pool-size=1',
  '--max-old-space-size=128',
]

const limits = ({ memory, cpuMs }: Place) => ({
  // Coming up counts, too.
  cpuSeconds: cpuMs / 1000 + 5,
  data: nodeBytes + copies * memory,
})

/** JavaScript behind `bwrap`, where Node and its engine are all there is. */
export async function wrappedJavaScript(
  place: Place & { readonly bwrap: string; readonly user?: number },
): Promise<Runtime> {
  const { bwrap, user, memory, child, limit } = place
  const file = realpathSync(fileURLToPath(child))
  const inside = { guest: '/toolway/guest', quickjs: '/toolway/node_modules/quickjs-wasi' }
  const sights: Sight[] = [
    ...(await librariesOf([process.execPath])).map(sightOf),
    { from: '/etc/ld.so.cache', to: '/etc/ld.so.cache', optional: true },
    { from: process.execPath, to: '/toolway/node' },
    { from: dirname(file), to: inside.guest },
    { from: quickjs, to: inside.quickjs },
  ]
  const filter = seccompFilter()
  const command = bwrapCommand({
    bwrap,
    sights,
    filtered: filter !== undefined,
    command: [
      '/toolway/node',
      ...nodeArguments(['/toolway/*']),
      join(inside.guest, file.slice(dirname(file).length)),
      join(inside.quickjs, wasm),
      `${memory}`,
    ],
  })
  const words = limited(command, limits(place))
  return {
    tier: 'bwrap',
    start: () =>
      processChild({
        command: words,
        wrapped: true,
        limit,
        ...(filter && { filter }),
        ...(user !== undefined && { user }),
      }),
  }
}

/** JavaScript in a process of its own, as nobody where we may choose. */
export function plainJavaScript(place: Place): Runtime {
  const { child, memory, limit } = place
  const file = realpathSync(fileURLToPath(child))
  const user = process.getuid?.() === 0 ? 65_534 : undefined
  const node = [
    process.execPath,
    ...nodeArguments([join(dirname(file), '*'), join(quickjs, '*')]),
    file,
    join(quickjs, wasm),
    `${memory}`,
  ]
  const words = limited(node, { ...limits(place), ...(user !== undefined && { processes: 512 }) })
  return { tier: 'process', start: () => processChild({ command: words, limit, ...(user !== undefined && { user }) }) }
}

/** JavaScript in a thread. */
export const threadedJavaScript = ({ child, memory, limit }: Place): Runtime => ({
  tier: 'worker',
  start: () => workerChild({ file: child, args: [join(quickjs, wasm), `${memory}`], memory, limit }),
})
