import { expect, test } from 'vitest'
import { project } from './project.fixture.ts'

const warningsOf = async (text: string) => (await (await project({ 'toolway.yaml': text })).load()).warnings

test('G8: a rule about a server that does not exist is a warning with a near miss', async () => {
  const warnings = await warningsOf(`
mcpServers: { filesystem: { command: x } }
agents:
  a: { allow: { servers: [filesystm, native, "*"], tools: { ghost: ["*"] } }, deny: { tools: { filesystem: [x] } } }
policy: { allowedServers: ["*", filesystem, other] }
limits: { servers: { nobody: 5 } }
`)
  expect(warnings).toEqual([
    'agents.a.allow.servers[0]: there is no server filesystm; did you mean filesystem?',
    'agents.a.allow.tools.ghost: there is no server ghost',
    'policy.allowedServers[2]: there is no server other',
    'limits.servers.nobody: there is no server nobody',
  ])
})

test('names that lead nowhere are warnings', async () => {
  expect(await warningsOf('agents: { a: {} }\ndefaults: { agent: b }\nchat: { model: m }')).toEqual([
    'chat.model: there is no model m',
  ])
})

test('keys without effect on a kind of server are warnings', async () => {
  const text =
    'mcpServers: { a: { command: x, headers: { A: b } }, b: { url: "http://x", env: { A: b }, args: [], cwd: . } }'
  expect(await warningsOf(text)).toEqual([
    'mcpServers.a.headers has no effect on a program that is started',
    'mcpServers.b.env has no effect on a server with a url',
    'mcpServers.b.cwd has no effect on a server with a url',
  ])
})
