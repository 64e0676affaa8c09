import { Ajv2020 } from 'ajv/dist/2020.js'
import type { JsonSchemaObject } from '../../constrain/schema.ts'
import type { CallableTool } from '../../constrain/stage-schemas.ts'
import { hello, patient } from '../model.fixture.ts'
import { collectAnswer, type Model } from '../model.ts'

const judge = new Ajv2020({ strict: false, logger: false, validateSchema: false })

/** Why a text is not JSON that fits a schema; `undefined` where it is. */
function wrongWith(schema: JsonSchemaObject, text: string): string | undefined {
  const value = (() => {
    try {
      return { parsed: JSON.parse(text) as unknown }
    } catch {
      return undefined
    }
  })()
  if (!value) return `no JSON: …${text.slice(-80)}`
  const { $id: _, $schema: __, ...plain } = schema
  const fits = judge.compile(plain)
  return fits(value.parsed) ? undefined : `${JSON.stringify(fits.errors?.[0])} in ${text.slice(0, 400)}`
}

/** Asks for an answer under a schema, and says what is wrong with it. */
export async function tryConstraint(model: Model, schema: JsonSchemaObject): Promise<string | undefined> {
  const constraint = { name: 'answer', schema }
  const { text, form, reason } = await collectAnswer(model.complete({ messages: hello, signal: patient(), constraint }))
  if (form !== 'grammar' || reason !== 'stop') return `it was sent as ${form} and ended by ${reason}`
  return wrongWith(schema, text)
}

/** Asks for calls of some tools, and says what is wrong with them. */
export async function tryTools(model: Model, tools: readonly CallableTool[]): Promise<string | undefined> {
  const asked = { messages: hello, signal: patient(), tools, toolChoice: 'required' } as const
  const { calls, reason, text } = await collectAnswer(model.complete(asked))
  if (reason !== 'calls' || calls.length === 0) return `it ended by ${reason}: ${text.slice(-80)}`
  for (const { function: called } of calls) {
    const tool = tools.find(({ name }) => name === called.name)
    const wrong = tool ? wrongWith(tool.parameters, called.arguments) : 'there is no such tool'
    if (wrong !== undefined) return `${called.name}: ${wrong}`
  }
  return undefined
}
