import { expect, test } from 'vitest'
import { disabling, enabling, isDisabled } from './enabling.ts'

const at = (key: string) => ['mcpServers', 'a', key]

test.each([
  { disabled: true, enabling: ['disabled'] },
  { enabled: false, enabling: ['enabled'] },
  { disabled: true, enabled: false, enabling: ['disabled', 'enabled'] },
])('V9: a server is enabled by removing what disables it: %j', ({ enabling: keys, ...definition }) => {
  expect(isDisabled(definition)).toBe(true)
  expect(enabling('a', definition)).toEqual({ changes: keys.map((key) => ({ path: at(key) })) })
})

test.each([
  [{}, { disabled: true }],
  [{ disabled: false }, { disabled: true }],
  [{ enabled: true }, { enabled: false }],
  [
    { enabled: true, disabled: false },
    { enabled: false, disabled: true },
  ],
])('V9: a server is disabled in the spelling that it uses: %j', (definition, values) => {
  expect(isDisabled(definition)).toBe(false)
  const changes = Object.entries(values).map(([key, value]) => ({ path: at(key), value }))
  expect(disabling('a', definition)).toEqual({ changes })
})
