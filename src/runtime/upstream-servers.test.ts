import { expect, test } from 'vitest'
import { fakeSource } from '../catalog/source.fixture.ts'
import { createListChangeDetector } from './upstream-servers.ts'

test('F13, B10: to be heard for the first time is no change of a list, nor is it that a server goes down or comes back', () => {
  const [plain, capable] = [fakeSource('files', { tools: ['read'] }), fakeSource('files', { tools: ['read', 'ask'] })]
  const kinds = new Map([['{}', plain]])
  const changed = createListChangeDetector({ kinds: () => kinds })
  expect(changed()).toBe(false)
  plain.become('unhealthy', 'it is down')
  expect(changed()).toBe(false)
  plain.become('healthy')
  // Listed anew: the same in other objects.
  plain.offer({ tools: ['read'] })
  expect(changed()).toBe(false)
  kinds.set('{"sampling":{}}', capable)
  expect(changed()).toBe(false)
  for (const source of [plain, capable]) {
    source.offer({ tools: [{ name: 'read', description: 'otherwise' }] })
    expect([changed(), changed()]).toEqual([true, false])
  }
  plain.offer({ prompts: ['read'] })
  expect(changed()).toBe(true)
})
