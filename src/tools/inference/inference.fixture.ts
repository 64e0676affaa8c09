import { createModels } from '../../chat/models/create-models.ts'
import { modelsSection } from '../../config/schema/chat.ts'
import { nativeSection } from '../../config/schema/tools.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { bodyOf, runTool } from '../access.fixture.ts'
import type { Tool } from '../define-tool.ts'
import { inferenceTools } from './index.ts'
import { type Reply, scriptedServer } from './model-server.fixture.ts'
import type { InferenceOptions } from './models.ts'

/** What the model servers are asked with. */
export const key = 'sk-secret-key-1234'

interface Setting extends Partial<InferenceOptions> {
  readonly written?: object
  readonly inference?: object
  readonly model?: string
}

/** The tools over models as they are configured, with the real models of the chat loop. */
export function tools({ written = {}, inference = {}, model, ...more }: Setting): Record<string, Tool> {
  const models = modelsSection.parse(written)
  const native = nativeSection.parse({ inference })
  const made = inferenceTools({
    config: { models, chat: { model }, native },
    models: createModels(models, { clock: systemClock, log: silentLog }),
    vet: () => Promise.reject(new Error('leads to a private or reserved address')),
    clock: systemClock,
    log: silentLog,
    ...more,
  })
  return Object.fromEntries(made.map((tool) => [tool.name, tool]))
}

/** The same over one model server, which answers as scripted. */
export async function over(paths: Readonly<Record<string, Reply>>, setting: Setting = {}) {
  const server = await scriptedServer(paths)
  const written = { local: { kind: 'openai', baseUrl: server.baseUrl, model: 'm', apiKey: key }, ...setting.written }
  const made = tools({ ...setting, written })
  const run = async (name: string, args: object, extra = {}) => bodyOf(await runTool(made[name] as Tool, args, extra))
  return { ...server, run, tools: made, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

export const openai = { kind: 'openai', baseUrl: 'http://127.0.0.1:9/v1', model: 'm' }
export const gguf = { kind: 'gguf', path: '/nowhere.gguf' }
