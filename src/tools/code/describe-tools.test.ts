import { expect, test } from 'vitest'
import * as z from 'zod'
import { createTestGateway, refusalOf, structuredOf } from '../access.fixture.ts'
import { defineTool } from '../define-tool.ts'
import { echo } from '../tools.fixture.ts'

const read = defineTool({
  name: 'read-file',
  description: 'Reads a file.',
  input: z.object({ path: z.string().describe('Where it is.'), head: z.int().min(1).optional() }),
  output: z.object({ text: z.string() }),
  run: () => ({ text: '' }),
})

const wordy = (name: string) => echo(name, 'word '.repeat(190))

interface Answer {
  declarations: string
  unknown?: { name: string; message: string }[]
  left_out?: string[]
  tokens_used: number
}

const gateway = createTestGateway({
  servers: { 'my-files': [read, echo('write')], words: [wordy('one'), wordy('two'), wordy('three')] },
})
const describeTools = async (args: object) => structuredOf<Answer>(await gateway.ask('describe_tools', args))

test('B9: describe_tools gives declarations as programs call them', async () => {
  const answer = await describeTools({ names: ['my-files.read-file', 'words.one'] })
  expect(answer.declarations.replace(/word .*word/, 'word')).toBe(`declare const tools: {
  my_files: {
    /** Exact name: "read-file". Reads a file. */
    read_file(args: {
      /** Where it is. */
      path: string;
      /** at least 1 */
      head?: number;
    }): Promise<{ text: string }>;
  };
  words: {
    /** word */
    one(args?: Record<string, unknown>): Promise<any /* no outputSchema */>;
  };
}`)
  expect(answer.tokens_used).toBe(Math.ceil(answer.declarations.length / 4))
  expect(answer).toEqual({ declarations: expect.any(String), tokens_used: expect.any(Number) })
})

test.each(['my-files.read-file', 'my_files.read_file', 'tools.my_files.read_file', 'my-files.read_file'])(
  'B9: %s is one of the spellings that are understood',
  async (name) => {
    const { declarations, unknown } = await describeTools({ names: [name] })
    expect(unknown).toBeUndefined()
    expect(declarations.match(/read_file\(/g)).toHaveLength(1)
  },
)

test('B9: a name twice is described once; unknown ones say what is wrong and leave the others alone', async () => {
  const { declarations, unknown } = await describeTools({
    names: ['words.one', 'words.one', 'words.none', 'toolway.find_tool'],
  })
  expect(declarations.match(/one\(/g)).toHaveLength(1)
  expect(unknown).toEqual([
    { name: 'words.none', message: 'no tool none on words' },
    { name: 'toolway.find_tool', message: expect.stringContaining('not a tool') },
  ])
})

test('B9: tools beyond the budget are listed by name only; the first is always described', async () => {
  const names = ['words.one', 'words.two', 'words.three']
  const answer = await describeTools({ names, max_tokens: 550 })
  expect(answer.left_out).toEqual(['words.three'])
  expect(answer.tokens_used).toBeLessThan(600)
  expect((await describeTools({ names, max_tokens: 100 })).left_out).toEqual(['words.two', 'words.three'])
})

test('F11: its record has the numbers of requested and returned tools, and of tokens', async () => {
  const { listing } = await gateway.ask('describe_tools', { names: ['words.one', 'words.none'] })
  expect(listing).toEqual({ requested: 2, returned: 1, tokens: expect.any(Number) })
})

test('E2: an empty list of names, too many, missing and empty names are refused', async () => {
  for (const names of [[], new Array(51).fill('a.b'), undefined, ['']]) {
    expect((await refusalOf(describeTools({ names }))).code).toBe('INVALID_ARGUMENTS')
  }
})
