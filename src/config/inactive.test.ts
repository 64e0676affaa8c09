import { expect, test } from 'vitest'
import { project } from './project.fixture.ts'

const inactive = async (text: string) => {
  const loaded = await (await project({ 'toolway.yaml': text })).load()
  return Object.fromEntries(loaded.inactive.map(({ key, feature }) => [key, feature]))
}

test('keys whose feature comes later are listed once, where they were set', async () => {
  const text = `
mcpServers:
  a: { command: x, session: caller, readOnly: true, guards: [{ kind: sql, arguments: [q] }], restarts: { max: 1 } }
  b: { url: "https://x", auth: { type: oauth }, approve: [y] }
agents: { one: { concurrency: 4, expose: code } }
limits: { perMinute: 5, queue: 3 }
native: { tools: [hash, fetch] }
defaults: { expose: code }
`
  expect(await inactive(text)).toEqual({
    'mcpServers.b.auth.type': 'OAuth (oauth)',
    'agents.one.expose': 'code mode (code)',
    'native.tools[1]': 'further native tools (fetch)',
    'defaults.expose': 'code mode (code)',
  })
})

test('what is active, empty, disabled or left at its only working value is not listed', async () => {
  const text = `
server: { port: 1 }
mcpServers:
  a:
    command: x
    args: [y]
    env: { A: b }
    description: d
    session: shared
    connect: eager
    idle: 1m
    readOnly: false
    approve: []
    tools: { include: [a], exclude: [b] }
    timeout: 1s
    toolTimeouts: { t: 1s }
    priority: 1
    refresh: 1m
    readTools: [r]
    idempotentTools: [i]
    trustAnnotations: true
  b: { url: "http://x", headers: { A: b }, auth: { type: bearer, token: t } }
  off: { command: x, readOnly: true, disabled: true }
naming: { strategy: flat }
discovery: { mode: startup }
defaults: { timeout: 1s, expose: meta, debug: true }
policy: { allowedServers: [a], allowedTools: [a.b], blockedTools: [a.c], requireAuth: [a.d] }
auth: { token: none, keys: [], jwt: { issuer: "https://x", audience: a, jwksUrl: "https://x", disabled: true } }
telemetry: { log: debug, traces: { otlp: "http://x", disabled: true } }
cache: { enabled: false }
sinks: { s: { kind: stdout, disabled: true } }
native: { tools: [hash, time], plugins: [] }
stores: { path: x, redis: { url: "redis://x", disabled: true } }
agents: {}
`
  expect(await inactive(text)).toEqual({})
})
