import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../config/load.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../shell.fixture.ts'
import { starter } from '../starter.ts'

test('B11: init writes a file that validate finds and accepts without a word of warning', async () => {
  await using place = await folder()
  const { code, stdout } = await toolway(['init'], place)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^Wrote toolway\.yaml\..*toolway validate.*toolway serve\n$/s)
  const validated = await toolway(['validate', '--json'], place)
  expect(validated.code).toBe(0)
  expect(JSON.parse(validated.stdout)).toMatchObject({
    valid: true,
    files: [{ path: join(place.cwd, 'toolway.yaml') }],
    warnings: [],
    inactive: [],
  })
})

test('B11: the servers in the starter are valid once they are uncommented', async () => {
  const uncommented = starter.replace(/^# ?(mcpServers:| {2}.*|)$/gm, '$1')
  await using place = await folder({ 'toolway.yaml': uncommented })
  const { config } = await loadConfig({ cwd: place.cwd, env: { ...place.env, REMOTE_TOKEN: 'x' } })
  expect(Object.keys(config.mcpServers)).toEqual(['filesystem', 'remote'])
})

test('B11: init does not overwrite a file unless it is forced to', async () => {
  await using place = await folder({ 'toolway.yaml': 'mine' })
  const refused = await toolway(['init'], place)
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('toolway.yaml is there already')
  expect(await readFile(join(place.cwd, 'toolway.yaml'), 'utf8')).toBe('mine')
  expect((await toolway(['init', '--force'], place)).code).toBe(0)
  expect(await readFile(join(place.cwd, 'toolway.yaml'), 'utf8')).toBe(starter)
})

test('B11: init --output writes elsewhere, and --json says where', async () => {
  await using place = await folder()
  const { stdout } = await toolway(['init', '--output', 'other.yml', '--json'], place)
  expect(JSON.parse(stdout)).toEqual({ path: join(place.cwd, 'other.yml') })
  expect((await toolway(['init', '--output', 'no/where.yaml'], place)).code).toBe(2)
})
