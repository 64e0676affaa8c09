import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createManualClock, type ManualClock } from '../../../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../../../tests/fixtures/folders.ts'
import { installLlama } from '../../../../tests/fixtures/llama/install.ts'
import { createKeptLog, type KeptLog } from '../../../../tests/fixtures/log.ts'
import type { Model } from '../model.ts'
import { GgufModel, type GgufModelOptions } from './gguf-model.ts'
import type { LlamaLibrary } from './llama-library.ts'
import { type RandomModel, writeRandomModel } from './random.fixture.ts'

const installed = installLlama<LlamaLibrary>()

/** Why there is no library to try a model with. */
export const missingLibrary = 'why' in installed ? installed.why : undefined

/** What is added to a title so that a skipped test says why. */
export const orWhy = missingLibrary === undefined ? '' : ` (skipped: ${missingLibrary})`

/** The library, where there is one. */
const loadLibrary = async (): Promise<LlamaLibrary> => {
  if ('why' in installed) throw new Error(installed.why)
  return await installed.load()
}

const settings = { context: 8192, threads: 1, idle: 600_000, timeout: 300_000 }

export interface Running extends AsyncDisposable {
  readonly model: Model
  readonly clock: ManualClock
  readonly log: KeptLog
  readonly path: string
}

interface Changes extends Partial<typeof settings>, Partial<Pick<GgufModelOptions, 'load' | 'free'>> {
  readonly weights?: RandomModel
  /** Where the model is looked for, which is where it is unless it should not be found. */
  at?(path: string): string
}

/** A model whose weights are chance. */
export async function startRandom(changes: Changes = {}): Promise<Running> {
  const { weights, load = loadLibrary, free, at = (path) => path, ...config } = changes
  const folder = await temporaryFolder()
  const path = join(folder.path, 'random.gguf')
  await writeRandomModel(path, weights)
  const clock = createManualClock()
  const log = createKeptLog()
  let answers = 0
  const model = new GgufModel({
    ...{ name: 'embedded', config: { path: at(path), ...settings, ...config }, clock, log, load },
    ...(free && { free }),
    // The same chance again and again, and another one for each answer.
    seed: () => ++answers,
  })
  return {
    ...{ model, clock, log, path },
    async [Symbol.asyncDispose]() {
      await model[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** The same, until the test has finished. */
export async function running(changes: Changes = {}): Promise<Running> {
  const started = await startRandom(changes)
  onTestFinished(() => started[Symbol.asyncDispose]())
  return started
}
