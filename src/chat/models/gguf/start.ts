import type { Llama, LlamaLibrary } from './library.ts'

/** llama.cpp, started. */
export interface Started {
  readonly llama: Llama
  /** Who wants to hear what it complains of. */
  readonly listeners: Set<(line: string) => void>
}

const started = new WeakMap<LlamaLibrary, Promise<Started>>()
const longest = 300

/** Starts llama.cpp once for all models of the process: it takes longer than loading a small model. */
export function startLlama(library: LlamaLibrary): Promise<Started> {
  const before = started.get(library)
  if (before) return before
  const now = start(library)
  started.set(library, now)
  // What is missing today may be installed tomorrow.
  now.catch(() => started.delete(library))
  return now
}

async function start(library: LlamaLibrary): Promise<Started> {
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
