import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { createEditHistory } from '../../admin/config/edit-history.ts'
import { user } from './clients.fixture.ts'

const before = '# mine\nversion: 1\nstores: { path: ./state }\n'
const after = `${before}limits: { perMinute: 5 }\n`

test('V9: edits of the dashboard are listed and undone on the command line', async () => {
  const { run, at } = await user({ 'shop/toolway.yaml': after })
  const file = at('shop', 'toolway.yaml')
  const history = createEditHistory(at('shop', 'state'))
  expect((await run('config', 'undo')).stderr).toContain('No edits')
  const diff = [['+', 'limits: { perMinute: 5 }']] as const
  const { id } = await history.add({ at: 1, by: 'token', file, paths: ['limits'], diff, before, after })
  const { edits } = JSON.parse((await run('config', 'history', '--json')).stdout)
  expect(edits).toEqual([{ id, at: 1, by: 'token', file, paths: ['limits'], diff }])
  expect((await run('config', 'undo', '--dry-run')).stdout).toContain('- limits')
  expect(await readFile(file, 'utf8')).toBe(after)
  expect(await run('config', 'undo', id)).toMatchObject({ code: 0 })
  expect(await readFile(file, 'utf8')).toBe(before)
  expect((await run('config', 'history')).stdout).toContain('undid limits')
})
