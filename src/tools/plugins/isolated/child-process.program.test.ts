import { expect, test } from 'vitest'
import { isolatedPlugins as modules } from '../../../../tests/fixtures/programs.ts'
import { refusalOf, runTool } from '../../access.fixture.ts'
import type { Tool } from '../../define-tool.ts'
import { pluginFolder, toolSource } from '../plugins.fixture.ts'

test('S2: an isolated tool that talks on the channel of its process does the gateway no harm', async () => {
  await using folder = await pluginFolder({ modules })
  const results = [
    { kind: 'result', id: 1 },
    { kind: 'result', id: 1, body: [] },
  ]
  const said = [null, 'ready', 7, {}, [], ...results, { kind: 'failure', id: 1 }, { kind: 'broken' }]
  const talks = `{
    for (const said of ${JSON.stringify(said)}) process.send!(said)
    if (word) throw new ToolwayError('constructor', 'made up')
    return 'fine'
  }`
  const source = toolSource('talks', talks, 'isolated: true,').replace('{ defineTool }', '{ defineTool, ToolwayError }')
  await folder.write({ 'a.ts': source })
  await using plugins = await folder.load('a.ts')
  const tool = plugins.tools[0] as Tool
  expect((await runTool(tool, {})).body.value.content?.[0]?.text).toBe('fine')
  expect(await refusalOf(runTool(tool, { word: 'x' }))).toMatchObject({ code: 'INTERNAL', message: 'made up' })
})
