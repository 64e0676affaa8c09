import { expect, test } from 'vitest'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { compileCapture } from './capture.ts'

type Options = Parameters<typeof compileCapture>[0]
const rules = (mcpServers: object, agents: object) => compileCapture({ mcpServers, agents } as Options)
const call = (server: string, agent: string) =>
  callOf({ entry: entryOf({ server }), caller: { ...callOf().caller, agent } })

test('V11: without an opt-in nothing is captured', () => {
  expect(rules({ files: { capture: false } }, { team: {} })).toBeUndefined()
})

test('V11: a server or an agent opts in; a child inherits it and may turn it off', () => {
  const wants = rules(
    { files: { capture: true }, git: {} },
    { team: { capture: true }, 'team.a': {}, 'team.b': { capture: false } },
  )
  expect(wants?.(call('files', 'default'))).toBe(true)
  expect(wants?.(call('git', 'default'))).toBe(false)
  expect(wants?.(call('git', 'team'))).toBe(true)
  expect(wants?.(call('git', 'team.a'))).toBe(true)
  expect(wants?.(call('git', 'team.b'))).toBe(false)
})
