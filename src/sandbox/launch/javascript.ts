import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { type Frame, messageKinds, threadArgument } from '../guest/protocol.ts'
import type { Runtime, SandboxChild } from '../runtime.ts'
import { type BwrapOptions, launchInBwrap } from './bwrap.ts'
import { createLifecycle, type LaunchOptions, processChild, withKernelLimits } from './process-child.ts'

const mebibyte = 1024 * 1024
/** Memory for Node itself. Most of it is reserved for compiled code and never used. */
const nodeBytes = 704 * mebibyte
/** How many copies of a program's memory may exist at once: in the engine, snapshot and compressed snapshot. */
const copies = 3

/** The engine's package folder, which contains the WebAssembly module. */
const quickjs = dirname(createRequire(import.meta.url).resolve('quickjs-wasi/quickjs.wasm'))
const engineFile = 'quickjs.wasm'

/** The command that runs the child with Node, which may read only these folders. */
const nodeCommand = (node: string, folders: readonly string[], file: string, engine: string, memory: number) => [
  node,
  '--permission',
  '--disable-sigusr1',
  ...folders.map((folder) => `--allow-fs-read=${join(folder, '*')}`),
  '--disallow-code-generation-from-strings',
  '--disable-warning=ExperimentalWarning',
  '--no-addons',
  '--v8-pool-size=1',
  // Optimizing the interpreter takes more CPU time than starting Node. By default, V8 does so for any program.
  '--wasm-tiering-budget=2000000000',
  '--max-old-space-size=128',
  // Recursion in the engine must reach the engine's limit first, which is an exception that the program can catch.
  '--stack-size=3900',
  file,
  join(engine, engineFile),
  `${memory}`,
]

const kernelLimits = ({ memory, cpuMs }: LaunchOptions) => ({
  // The limit also covers the time that startup takes.
  cpuSeconds: cpuMs / 1000 + 5,
  data: nodeBytes + copies * memory,
})

/** JavaScript in `bwrap`, with only Node and the engine visible. */
export function javascriptInBwrap(options: BwrapOptions): Promise<Runtime> {
  const file = realpathSync(fileURLToPath(options.child))
  const inside = { node: '/toolway/node', guest: '/toolway/guest', quickjs: '/toolway/node_modules/quickjs-wasi' }
  return launchInBwrap(options, {
    command: nodeCommand(inside.node, ['/toolway'], join(inside.guest, basename(file)), inside.quickjs, options.memory),
    executable: process.execPath,
    mounts: [
      { from: process.execPath, to: inside.node },
      { from: dirname(file), to: inside.guest },
      { from: quickjs, to: inside.quickjs },
    ],
    limits: kernelLimits(options),
  })
}

/** JavaScript in a separate process, as the user `nobody` if Toolway runs as root. */
export function javascriptProcess(options: LaunchOptions): Runtime {
  const { child, memory, limit } = options
  const file = realpathSync(fileURLToPath(child))
  const user = process.getuid?.() === 0 ? 65_534 : undefined
  const node = nodeCommand(process.execPath, [dirname(file), quickjs], file, quickjs, memory)
  const command = withKernelLimits(node, { ...kernelLimits(options), processes: user === undefined ? undefined : 512 })
  return { tier: 'process', start: () => processChild({ command, limit, user }) }
}

/** JavaScript in a worker thread, isolated only by the WebAssembly engine. */
export const javascriptWorker = (options: LaunchOptions): Runtime => ({
  tier: 'worker',
  start: () => workerChild(options),
})

function workerChild({ child, memory, limit }: LaunchOptions): SandboxChild {
  const worker = new Worker(child, {
    argv: [join(quickjs, engineFile), `${memory}`, threadArgument],
    env: {},
    execArgv: ['--disable-warning=ExperimentalWarning'],
    name: 'sandbox',
    stdin: false,
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 64 + Math.ceil(memory / mebibyte), maxYoungGenerationSizeMb: 16 },
  })
  worker.unref()
  const life = createLifecycle()
  const { ready, ended, listen } = life
  let cpu = 0

  worker.stdout.resume()
  worker.stderr.resume()
  worker.on('message', ({ kind, id, payload }: Frame) => {
    const maxBytes = limit(kind)
    if (maxBytes === undefined || payload.length > maxBytes)
      life.listener?.broken(`a message of ${payload.length} bytes`)
    else if (kind === messageKinds.ready) life.started()
    else life.listener?.frame({ kind, id, payload: Buffer.from(payload) })
  })
  worker.on('error', (error) => life.failed(String(error.message)))
  worker.on('exit', (code) => life.exited(`its thread ended with code ${code}`))

  return {
    ready,
    ended,
    listen,
    async send(kind, id, payload = '') {
      worker.postMessage({ kind, id, payload: typeof payload === 'string' ? Buffer.from(payload) : payload })
    },
    cpuMs() {
      // Returns the value from the previous poll and requests a new one. That is accurate enough for regular polling.
      worker.cpuUsage?.().then(
        ({ user, system }) => {
          cpu = (user + system) / 1000
        },
        () => {},
      )
      return cpu
    },
    freeze: () => false,
    thaw() {},
    async kill() {
      await worker.terminate()
      await ended
    },
  }
}
