import { open } from 'node:fs/promises'
import { availableMemory } from 'node:process'
import { setImmediate as nextMoment } from 'node:timers/promises'
import { ToolwayError } from '../../../core/errors.ts'
import type { Log } from '../../../core/log.ts'
import { cannotLoad, noBuild, noFile, noGguf, noMemory, notInstalled, outOfMemory } from './errors.ts'
import type { ChatWrapper, Llama, LlamaContext, LlamaLibrary, LlamaModel, Sequence } from './llama-library.ts'

/** A model in memory, and the one conversation that it has before its eyes. */
export interface LoadedModel {
  readonly library: LlamaLibrary
  readonly llama: Llama
  readonly model: LlamaModel
  readonly sequence: Sequence
  readonly wrapper: ChatWrapper
  /** Tokens that it sees at once. */
  readonly context: number
  /** Why no token could be chosen since it was last asked, if that is why an answer failed. */
  samplerFault(): unknown
  dispose(): Promise<void>
}

export interface LoadModelOptions {
  readonly name: string
  readonly path: string
  readonly context: number
  readonly threads: number
  readonly log: Log
  /** Where the library comes from. */
  load(): Promise<LlamaLibrary>
  /** Bytes that may be used. llama.cpp does not ask, and the kernel kills whoever takes more. */
  free?(): number
}

const maxComplaints = 8

/** Brings a model into memory. */
export async function loadLlamaModel(options: LoadModelOptions, signal: AbortSignal): Promise<LoadedModel> {
  const { name, path, log, free = availableMemory } = options
  const size = await sizeOf(name, path)
  if (size > free()) throw noMemory(name, size, free())
  const { library, llama, listeners } = await begin(options)
  const complaints: string[] = []
  const listen = (line: string): void => {
    log.debug({ model: name, line }, 'llama.cpp complains')
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
    // Without a template of the model's own, the library would guess one by its architecture.
    const isPlain = !model.fileInfo.metadata.tokenizer?.chat_template?.trim()
    const wrapper = library.resolveChatWrapper(model, { ...(isPlain && { type: 'general' }), warningLogs: false })
    log.info({ model: name, bytes: size, context: context.contextSize }, 'the model has been loaded')
    const samplerFault = catchSamplerFaults(context)
    failing.move()
    return {
      samplerFault,
      ...{ library, llama, model, wrapper, context: context.contextSize, sequence: context.getSequence() },
      dispose: () => model.dispose(),
    }
  } catch (thrown) {
    if (signal.aborted) throw signal.reason
    if (thrown instanceof ToolwayError) throw thrown
    if (thrown instanceof library.InsufficientMemoryError) throw outOfMemory(name, thrown)
    // What llama.cpp says takes another way than its failure, and may be a moment late.
    for (let moment = 0; moment < 20 && complaints.length === 0; moment++) await nextMoment()
    throw cannotLoad(name, path, complaints[0] ?? '', thrown)
  } finally {
    listeners.delete(listen)
  }
}

/** What the library takes for "no token": it then fails as it should. */
const noToken = -1

/**
 * Turns failures of the sampler into failures of the answer. The library lets them go unhandled: the answer never ends,
 * the context stays locked, and the process is told of a rejection. A grammar that no token of the vocabulary can go on
 * with is enough. Gives the last fault, once.
 */
function catchSamplerFaults({ _ctx: native }: LlamaContext): () => unknown {
  let fault: unknown
  const sample = native?.sampleToken
  if (native && sample) {
    const caught = async (...given: unknown[]) => {
      try {
        return await sample.apply(native, given)
      } catch (thrown) {
        fault = thrown
        return noToken
      }
    }
    // Methods of native classes are read-only, so that an assignment would throw.
    Object.defineProperty(native, 'sampleToken', { value: caught })
  }
  return () => {
    const last = fault
    fault = undefined
    return last
  }
}

/** The library would take any file, and say little when it cannot. */
async function sizeOf(name: string, path: string): Promise<number> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    if (buffer.toString('latin1', 0, bytesRead) === 'GGUF') return size
  } catch (cause) {
    throw noFile(name, path, cause)
  }
  throw noGguf(name, path)
}

async function begin({ name, load }: LoadModelOptions): Promise<LlamaRuntime & { readonly library: LlamaLibrary }> {
  const library = await load().catch((cause) => {
    throw notInstalled(name, cause)
  })
  try {
    return { library, ...(await startLlama(library)) }
  } catch (cause) {
    throw noBuild(name, cause)
  }
}

/** llama.cpp, started. */
interface LlamaRuntime {
  readonly llama: Llama
  /** Who wants to hear what it complains of. */
  readonly listeners: Set<(line: string) => void>
}

const started = new WeakMap<LlamaLibrary, Promise<LlamaRuntime>>()
const longest = 300

/** Starts llama.cpp once for all models of the process: it takes longer than loading a small model. */
function startLlama(library: LlamaLibrary): Promise<LlamaRuntime> {
  const before = started.get(library)
  if (before) return before
  const now = start(library)
  started.set(library, now)
  // What is missing today may be installed tomorrow.
  now.catch(() => started.delete(library))
  return now
}

async function start(library: LlamaLibrary): Promise<LlamaRuntime> {
  const listeners = new Set<(line: string) => void>()
  const llama = await library.getLlama({
    gpu: false,
    // What is not there is neither built nor fetched behind anybody's back.
    build: 'never',
    skipDownload: true,
    maxThreads: 0,
    progressLogs: false,
    logLevel: 'error',
    logger(_level, message) {
      const line = message.trim().slice(0, longest)
      if (line !== '') for (const listener of listeners) listener(line)
    },
  })
  return { llama, listeners }
}
