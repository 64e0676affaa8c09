import { open } from 'node:fs/promises'
import { availableMemory } from 'node:process'
import { setImmediate as nextMoment } from 'node:timers/promises'
import type { Clock } from '../../../core/clock.ts'
import { settles } from '../../../core/deadline.ts'
import { ToolwayError } from '../../../core/errors.ts'
import type { Log } from '../../../core/log.ts'
import { createLazy, memoizeByObject } from '../../../lib/memoize.ts'
import { cannotLoad, modelFileMissing, modelOutOfMemory, noBuild, noGguf, noMemory, notInstalled } from './errors.ts'
import type { ChatWrapper, Llama, LlamaContext, LlamaLibrary, LlamaModel, TokenSequence } from './llama-library.ts'

export interface LoadedModel {
  readonly library: LlamaLibrary
  readonly llama: Llama
  readonly model: LlamaModel
  readonly sequence: TokenSequence
  readonly wrapper: ChatWrapper
  readonly context: number
  /** Returns the last sampling error since the previous call, if any. */
  samplerFault(): unknown
  dispose(): Promise<void>
}

interface LoadModelOptions {
  readonly name: string
  readonly path: string
  readonly context: number
  readonly threads: number
  readonly log: Log
  load(): Promise<LlamaLibrary>
  /** Returns the free memory in bytes. llama.cpp does not check it, and the kernel may kill the process. */
  readonly free?: () => number
}

const maxComplaints = 8

export async function loadLlamaModel(options: LoadModelOptions, signal: AbortSignal): Promise<LoadedModel> {
  const { name, path, log, free = availableMemory } = options
  const size = await ggufFileBytes(name, path)
  if (size > free()) throw noMemory(name, size, free())
  const { library, llama, listeners } = await openLlama(options)
  const complaints: string[] = []
  const listen = (line: string): void => {
    log.debug({ model: name, line }, 'llama.cpp reported an error')
    if (complaints.length < maxComplaints) complaints.push(line)
  }
  listeners.add(listen)
  try {
    const model = await llama.loadModel({ modelPath: path, loadSignal: signal })
    await using failing = new AsyncDisposableStack()
    failing.defer(() => model.dispose())
    const contextSize = Math.min(options.context, model.trainContextSize)
    const needed = model.fileInsights.estimateContextResourceRequirements({ contextSize, modelGpuLayers: 0 }).cpuRam
    if (needed > free()) throw noMemory(name, needed, free())
    const context = await model.createContext({ contextSize, threads: options.threads, createSignal: signal })
    // If the file has no chat template, use a general one instead of one that the library guesses.
    const isPlain = !model.fileInfo.metadata.tokenizer?.chat_template?.trim()
    const wrapper = library.resolveChatWrapper(model, { ...(isPlain && { type: 'general' }), warningLogs: false })
    log.info({ model: name, bytes: size, context: context.contextSize }, 'model loaded')
    const samplerFault = catchSamplerFaults(context)
    failing.move()
    const tokens = { context: context.contextSize, sequence: context.getSequence() }
    return { library, llama, model, wrapper, samplerFault, ...tokens, dispose: () => model.dispose() }
  } catch (thrown) {
    if (signal.aborted) throw signal.reason
    if (thrown instanceof ToolwayError) throw thrown
    if (thrown instanceof library.InsufficientMemoryError) throw modelOutOfMemory(name, thrown)
    // llama.cpp's log arrives separately and may be late, so wait briefly for it.
    for (let moment = 0; moment < 20 && complaints.length === 0; moment++) await nextMoment()
    throw cannotLoad(name, path, complaints[0] ?? '', thrown)
  } finally {
    listeners.delete(listen)
  }
}

/** The library's value for "no token", which it handles as an error. */
const noToken = -1

/**
 * Makes the answer fail on a sampling error. The library leaves such errors unhandled: the answer never ends, the
 * context stays locked, and the process gets an unhandled rejection. A grammar that no token can continue is enough to
 * cause one. The returned function reports each error once.
 */
function catchSamplerFaults({ _ctx: native }: LlamaContext): () => unknown {
  let fault: unknown
  const sample = native?.sampleToken
  if (native && sample) {
    const caught = async (...args: unknown[]) => {
      try {
        return await sample.apply(native, args)
      } catch (thrown) {
        fault = thrown
        return noToken
      }
    }
    // Redefine the property: methods of native classes are read-only, so an assignment would throw.
    Object.defineProperty(native, 'sampleToken', { value: caught })
  }
  return () => {
    const last = fault
    fault = undefined
    return last
  }
}

/** The size of a GGUF file. Throws for other files: the library accepts any file and explains little when it fails. */
async function ggufFileBytes(name: string, path: string): Promise<number> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    if (buffer.toString('latin1', 0, bytesRead) === 'GGUF') return size
  } catch (cause) {
    throw modelFileMissing(name, path, cause)
  }
  throw noGguf(name, path)
}

async function openLlama({ name, load }: LoadModelOptions) {
  const library = await load().catch((cause) => {
    throw notInstalled(name, cause)
  })
  try {
    return { library, ...(await llamaOf(library).get()) }
  } catch (cause) {
    throw noBuild(name, cause)
  }
}

const maxLogLine = 300

/**
 * Starts llama.cpp only once per process, because starting takes longer than loading a small model. After a failure, the
 * next use tries again: the missing build may have been installed by then.
 */
const llamaOf = memoizeByObject((library: LlamaLibrary) => createLazy(() => startLlama(library)))

async function startLlama(library: LlamaLibrary) {
  /** Functions that receive the lines of llama.cpp's error log. */
  const listeners = new Set<(line: string) => void>()
  const llama = await library.getLlama({
    gpu: false,
    // Never build or download anything at run time.
    build: 'never',
    skipDownload: true,
    maxThreads: 0,
    progressLogs: false,
    logLevel: 'error',
    logger(_level, message) {
      const line = message.trim().slice(0, maxLogLine)
      if (line !== '') for (const listener of listeners) listener(line)
    },
  })
  return { llama, listeners }
}

/** How long work may continue after its signal has aborted. A prompt slice can take seconds on a slow machine. */
const stuckAfterMs = 15_000

/**
 * Keeps a large resource loaded until it has been idle for `idleMs`; 0 means forever. A failed load is retried. Work that
 * is still running long after its signal has aborted is abandoned, together with the resource.
 */
export function keepLoaded<Kept extends { dispose(): Promise<void> }>(options: {
  load(): Promise<Kept>
  readonly idleMs: number
  /** Called when the resource has been abandoned. */
  stuck(): void
  unloaded(): void
  readonly clock: Clock
}) {
  const { load, idleMs, stuck, unloaded, clock } = options
  let kept: Kept | undefined
  let timer: Disposable | undefined
  /** Serializes loading, use and unloading. */
  let last: Promise<unknown> = Promise.resolve()

  const inOrder = <Made>(work: () => Promise<Made>): Promise<Made> => {
    const next = last.then(work, work)
    last = next.catch(() => {})
    return next
  }

  const drop = async (): Promise<void> => {
    const disposal = kept?.dispose()
    kept = undefined
    if (disposal && (await settles(disposal, stuckAfterMs, clock))) await disposal
  }

  const orAbandon = async <Made>(work: Promise<Made>, signal: AbortSignal): Promise<Made> => {
    const { promise, reject } = Promise.withResolvers<never>()
    let timer: Disposable | undefined
    const begin = () => {
      timer = clock.after(stuckAfterMs, () => {
        // The abandoned work may still be using the resource, so do not reuse it or wait for its disposal.
        void kept?.dispose().catch(() => {})
        kept = undefined
        stuck()
        reject(signal.reason)
      })
    }
    if (signal.aborted) begin()
    signal.addEventListener('abort', begin, { once: true })
    try {
      return await Promise.race([work, promise])
    } finally {
      timer?.[Symbol.dispose]()
      signal.removeEventListener('abort', begin)
    }
  }

  return {
    /** Runs work with the resource, which is loaded first if necessary. Only one piece of work runs at a time. */
    use: <Made>(work: (kept: Kept) => Promise<Made>, signal: AbortSignal): Promise<Made> =>
      inOrder(async () => {
        timer?.[Symbol.dispose]()
        kept ??= await load()
        try {
          return await orAbandon(work(kept), signal)
        } finally {
          if (idleMs > 0) timer = clock.after(idleMs, () => void inOrder(drop).then(unloaded))
        }
      }),
    [Symbol.asyncDispose]: (): Promise<void> =>
      inOrder(async () => {
        timer?.[Symbol.dispose]()
        await drop()
      }),
  }
}
