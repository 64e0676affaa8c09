import { expect, test } from 'vitest'
import { type Config, configSchema } from '../config/schema.ts'
import { compareConfigs } from './config-difference.ts'

const configOf = (written: object = {}) => configSchema.parse(written) as unknown as Config
const openly = () => true
const words = (before: object, after: object, mayTell = openly as (path: readonly string[]) => boolean) =>
  compareConfigs(configOf(before), configOf(after), mayTell).changes

test('G8, G10: changes of a reload are described in words', () => {
  const before = {
    mcpServers: { memory: { command: 'a' }, files: { command: 'b' } },
    limits: { perMinute: 60 },
    policy: { blockedTools: ['a.*', 'b.x'] },
    agents: { dev: { allow: { servers: ['files'] } } },
  }
  const after = {
    mcpServers: { files: { command: 'b', concurrency: 4 }, github: { command: 'c' } },
    limits: { perMinute: 120 },
    policy: { blockedTools: ['b.x', 'c.y'] },
    agents: { dev: { allow: { servers: ['files'] }, perMinute: 5 }, qa: {} },
  }
  expect(words(before, after).toSorted()).toEqual([
    'agent qa added',
    'agents.dev.perMinute: none → 5',
    'limits.perMinute: 60 → 120',
    'mcpServers.files.concurrency: 16 → 4',
    'policy.blockedTools: c.y added, a.* removed',
    'server github added',
    'server memory removed',
  ])
  expect(words(after, after)).toEqual([])
})

test('G8: settings that need a restart are marked', () => {
  expect(words({}, { server: { port: 1 } })).toEqual(['server.port: 4322 → 1 (after a restart)'])
  expect(words({}, { audit: { arguments: 'none' } })).toEqual(['audit.arguments: redacted → none'])
})

test('B6: secret values are not shown, only that they were changed, added or removed', () => {
  const written = (env: object, args: string[]) => ({ mcpServers: { a: { command: 'x', env, args } } })
  const before = written({ KEY: 'secret-one', OLD: 'secret-two' }, ['--token', 'secret-three'])
  const after = written({ KEY: 'secret-four', NEW: 'secret-five' }, ['--token', 'secret-six'])
  const told = words(before, after, () => false)
  expect(told.toSorted()).toEqual([
    'mcpServers.a.args changed',
    'mcpServers.a.env.KEY changed',
    'mcpServers.a.env.NEW added',
    'mcpServers.a.env.OLD removed',
  ])
})

test('a change of everything is bounded, and each value is cut to one harmless line', () => {
  const many = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`s${index}`, { command: 'x' }]))
  const told = words({}, { mcpServers: many })
  expect(told).toHaveLength(101)
  expect(told.at(-1)).toBe('and 50 more')
  const [described] = words(
    { mcpServers: { a: { command: 'x' } } },
    { mcpServers: { a: { command: 'x', description: `one\n\u001b[31mtwo${'.'.repeat(500)}` } } },
  )
  expect(described).toHaveLength('mcpServers.a.description:  → '.length + 100)
  expect(described).not.toMatch(/[\n\u001b]/)
})

test('G8: a changed folder for state is reported by the name of its setting alone', () => {
  const storedIn = (path: string, common: string): Config => {
    const config = configOf()
    return { ...config, stores: { ...config.stores, path, common } }
  }
  const before = storedIn('/a', '/a')
  for (const after of [storedIn('/b', '/b'), storedIn('/a', '/b')]) {
    expect(compareConfigs(before, after).difference.atNextStart).toEqual(['stores.path'])
  }
  const { changes } = compareConfigs(before, storedIn('/b', '/b'), openly)
  expect(changes).toEqual(['stores.path: /a → /b (after a restart)'])
})
