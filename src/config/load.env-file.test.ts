import { expect, test } from 'vitest'
import { brief, project } from './project.fixture.ts'

test('B11: envFile adds variables to env, which wins; in our own file too', async () => {
  const { load, at } = await project({
    'toolway.yaml': 'version: 1\nmcpServers: { a: { command: x, env: { A: own }, envFile: "${WHERE}/.env" } }',
    'sub/.env': 'export A=file\nB="b # c"\n# comment\nC=${B}\n',
  })
  const { config, filesToWatch } = await load({ env: { WHERE: 'sub' } })
  expect(config.mcpServers.a).toMatchObject({ env: { A: 'own', B: 'b # c', C: '${B}' } })
  expect(filesToWatch).toContain(at('sub', '.env'))
})

test('B11: a file that is not there is an error at its place, unless the server is disabled', async () => {
  const { problems, load } = await project({
    'toolway.yaml': 'version: 1\nmcpServers:\n  a:\n    command: x\n    envFile: gone\n',
    'off.yaml': 'version: 1\nmcpServers: { a: { command: x, envFile: gone, disabled: true } }',
  })
  expect(brief(await problems())[0]).toMatch(/^5:14 mcpServers\.a\.envFile: .*gone: no such file/)
  expect((await load({ paths: ['off.yaml'] })).config.mcpServers.a?.disabled).toBe(true)
})
