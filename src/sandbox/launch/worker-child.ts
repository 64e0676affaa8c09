import { Worker } from 'node:worker_threads'
import { threadArgument } from '../guest/channel.ts'
import { type Frame, messageKinds } from '../guest/protocol.ts'
import type { SandboxChild } from '../runtime.ts'
import { createLifecycle } from './options.ts'

/** Starts a child as a worker thread, isolated only by the WebAssembly engine. */
export function workerChild(options: {
  readonly file: URL
  readonly args: readonly string[]
  /** Memory for the program, in bytes. */
  readonly memory: number
  limit(kind: number): number | undefined
}): SandboxChild {
  const { file, args, memory, limit } = options
  const worker = new Worker(file, {
    argv: [...args, threadArgument],
    env: {},
    execArgv: ['--disable-warning=ExperimentalWarning'],
    name: 'sandbox',
    stdin: false,
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 64 + Math.ceil(memory / 1024 / 1024), maxYoungGenerationSizeMb: 16 },
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
