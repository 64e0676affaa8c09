import { expect, test } from 'vitest'
import { folder } from '../folder.fixture.ts'
import { checkup } from './checkup.fixture.ts'

const files = (plugins: readonly string[]) => ({
  'toolway.json': { server: { port: 0 }, stores: { path: './state' }, sandbox: { languages: [] }, native: { plugins } },
  'broken.js': 'throw new Error("made for another version")',
})

test('B11, S2: a plugin that cannot be loaded is a problem, because the gateway would not start', async () => {
  await using at = await folder(files(['./broken.js']))
  const { code, of } = await checkup(at)
  expect(of('plugins')).toMatchObject([
    { status: 'problem', message: expect.stringMatching(/broken\.js .*made for another version/) },
  ])
  expect(code).toBe(5)
})

test('B11: without plugins, they are not mentioned', async () => {
  await using at = await folder(files([]))
  expect((await checkup(at)).of('plugins')).toEqual([])
})
