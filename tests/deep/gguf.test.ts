import { describe, expect, test } from 'vitest'
import { callSchema, finalSchema, selectionSchema } from '../../src/chat/constrain/stage-schemas.ts'
import { missingLibrary, orWhy, running } from '../../src/chat/models/gguf/model.fixture.ts'
import { writtenTools } from '../../src/chat/models/gguf/tools.fixture.ts'
import { tryConstraint, tryTools } from '../../src/chat/models/gguf/valid.fixture.ts'
import { realTools } from '../fixtures/real-tools.ts'

const runs = 100

describe.skipIf(missingLibrary !== undefined)(`S4: a model with random weights gives valid answers${orWhy}`, () => {
  const names = writtenTools.map(({ name }) => name)
  test.each([
    ['selection', selectionSchema(names)],
    ['call', callSchema(writtenTools)],
    ['final', finalSchema],
  ])('a hundred times under the schema of %s', async (_stage, schema) => {
    const { model } = await running({ context: 32_768 })
    const wrong: unknown[] = []
    for (let run = 0; run < runs; run++) wrong.push(await tryConstraint(model, schema))
    expect(wrong.filter((one) => one !== undefined)).toEqual([])
  })

  test('for each of more than fifty tools, several times', async () => {
    const real = (await realTools()).map(({ inputSchema, ...tool }) => ({ ...tool, parameters: inputSchema }))
    const tools = [...writtenTools, ...real]
    expect(tools.length).toBeGreaterThan(50)
    const { model } = await running({ context: 32_768 })
    const wrong: unknown[] = []
    for (const tool of tools) {
      for (let run = 0; run < 10; run++) wrong.push(await tryTools(model, [tool]))
    }
    expect(wrong.filter((one) => one !== undefined)).toEqual([])
  })
})
