import * as z from 'zod'
import { address, duration, flag, limit, numeric, path, text } from './values.ts'

const disabled = flag().prefault(false).describe('Leaves the model out.')

const timeouts = z.strictObject({
  total: limit().prefault('5m').describe('One answer, with everything that has to be tried for it.'),
  step: limit().prefault('3m').describe('One request, from the first byte sent to the last one received.'),
  chunk: limit().prefault('30s').describe('Between two pieces of an answer that is streamed.'),
})

const openai = z.strictObject({
  kind: z.literal('openai').describe('Any server that speaks the OpenAI interface.'),
  baseUrl: address('http', 'https').describe('Its address, up to and including /v1.'),
  model: text('the name of a model').describe('Name of the model, as its server knows it.'),
  apiKey: text('an API key').optional().describe('API key; best written as a variable.'),
  constraint: z
    .enum(['auto', 'json_schema', 'grammar', 'json_object', 'none'])
    .default('auto')
    .describe('How answers are held to a schema; auto takes the strongest form that the server offers.'),
  timeouts: timeouts.prefault({}).describe('How long the server is waited for.'),
  disabled,
})

const gguf = z.strictObject({
  kind: z.literal('gguf').describe('A model file, run in process.'),
  path: path().describe('The model file.'),
  context: numeric({ min: 256, max: 1_048_576 })
    .prefault(8192)
    .describe('Tokens that the model sees at once, its answer included; never more than it was made for.'),
  threads: numeric({ min: 1, max: 256 })
    .optional()
    .describe('Threads that it computes with; half of the processors unless set.'),
  idle: duration().prefault('10m').describe('How long it stays in memory after an answer; 0 for ever.'),
  timeout: limit().prefault('5m').describe('One answer, with waiting for others and loading the file.'),
  disabled,
})

/** Language models, by the name that the rest of the configuration uses. */
export const modelsSection = z.record(z.string(), z.discriminatedUnion('kind', [openai, gguf]))
