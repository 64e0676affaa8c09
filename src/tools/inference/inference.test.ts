import { describe, expect, test } from 'vitest'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { bodyOf, refusalOf, runTool } from '../access.fixture.ts'
import type { Tool } from '../define-tool.ts'
import { gguf, openai, tools } from './inference.fixture.ts'
import { says, scriptedServer } from './model-server.fixture.ts'

describe('inference tools', () => {
  test('F17: without a model there is no tool, and a model file only writes', () => {
    expect(Object.keys(tools({}))).toEqual([])
    expect(Object.keys(tools({ written: { a: { ...openai, disabled: true } } }))).toEqual([])
    expect(Object.keys(tools({ written: { a: gguf } }))).toEqual(['generate'])
    expect(Object.keys(tools({ written: { a: openai } }))).toEqual(['generate', 'vision', 'speech', 'diffusion'])
  })

  test('F17: a tool is left out where its model is named wrongly, and the log says so', () => {
    const log = createKeptLog()
    const made = tools({ written: { a: openai, b: gguf }, inference: { speech: 'nope', diffusion: 'b' }, log })
    expect(Object.keys(made)).toEqual(['generate', 'vision'])
    expect(log.lines.map(({ facts }) => facts.model)).toEqual(['nope', 'b'])
  })

  test.each([
    [{ inference: { generate: 'c' }, model: 'b' }, 'c'],
    [{ model: 'b' }, 'b'],
    [{}, 'a'],
    [{ model: 'nope' }, 'a'],
  ])('F17: with %j the usual model is %s', async (setting, name) => {
    await using server = await scriptedServer({ '/chat/completions': says('x') })
    const one = { ...openai, baseUrl: server.baseUrl }
    const made = tools({ ...setting, written: { a: one, b: one, c: one } })
    const { structuredContent } = bodyOf(await runTool(made.generate as Tool, { prompt: 'hi' }))
    expect(structuredContent).toMatchObject({ model: name })
    expect(made.generate?.definition.inputSchema).toMatchObject({
      properties: { model: { description: expect.stringContaining(`The model: ${name}, `) } },
    })
  })

  test('F17: the usual model for images is one that accepts them, if any does', () => {
    const eye = { ...openai, vision: true }
    const usual = (written: object, model?: string) =>
      JSON.stringify(tools({ written, model }).vision?.definition.inputSchema).match(/The model: (\w+)/)?.[1]
    expect(usual({ a: openai, b: eye, c: eye }, 'a')).toBe('b')
    expect(usual({ a: openai, b: eye, c: eye }, 'c')).toBe('c')
    expect(usual({ a: openai, b: openai }, 'b')).toBe('b')
  })

  test('F17: a model that is not there is refused with what there is', async () => {
    const made = tools({ written: { local: openai, other: openai } })
    const refusal = await refusalOf(runTool(made.generate as Tool, { prompt: 'x', model: 'locl' }))
    expect(refusal.message).toBe('There is no model "locl" for this task; did you mean "local"?')
  })
})
