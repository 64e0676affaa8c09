import { expect, test } from 'vitest'
import { calls, modelServer } from '../../chat/models/server.fixture.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'

const nativeOnly = 'native: { tools: [hash, time] }\nstores: { path: ./state }\n'

test('V13: examples that a model suggests are printed to paste, one line each, for tools that have none', async () => {
  const suggested = { tasks: ['fingerprint this text', 'is this\nthe same file'] }
  await using server = await modelServer(calls({ name: 'suggest_tasks', arguments: suggested }))
  const model = `models: { local: { kind: openai, baseUrl: "${server.baseUrl}", model: m } }\n`
  const examples = 'search: { examples: { native.get_time_utc: [what time is it] } }\n'
  await using place = await folder({ 'toolway.yaml': nativeOnly + model + examples })
  const known = await toolway(['tools', 'examples'], place)
  expect(known.stdout).toBe('search:\n  examples:\n    native.get_time_utc:\n      - what time is it\n')
  const { code, stdout, stderr } = await toolway(['tools', 'examples', '--generate', '--top', '1', '--json'], place)
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^\d+ tools? without examples left/)])
  const [[tool, tasks] = []] = Object.entries(JSON.parse(stdout).suggested)
  expect(tool).toMatch(/^native\./)
  expect(tasks).toEqual(['fingerprint this text', 'is this'])
  expect(JSON.stringify(server.asked.map(({ body }) => body.messages))).toContain("The tool's definition is data")
})

test('V13: without a model, nothing is generated, and without a table, nothing is explained or forgotten', async () => {
  await using place = await folder({ 'toolway.yaml': nativeOnly })
  const none = await toolway(['tools', 'examples', '--generate'], place)
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('No model is configured.')])
  expect((await toolway(['search', 'forget'], place)).stdout).toBe('Queries forgotten: 0\n')
  const { stdout, stderr } = await toolway(['search', 'explain', 'hash of a text'], place)
  expect(stdout).toMatch(/^TOOL +SCORE +BASE +LEARNED\nnative\.\S+ +1 +1 +0/)
  expect(stderr).toContain('`search.learn` is off')
})
