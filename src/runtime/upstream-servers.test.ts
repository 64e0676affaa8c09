import { expect, test } from 'vitest'
import { fakeSource } from '../catalog/source.fixture.ts'
import { createListTracker } from './upstream-servers.ts'

test('F13, B10: a first list, or a server that goes down and recovers, is not a change of a list', () => {
  const [plain, capable] = [fakeSource('files', { tools: ['read'] }), fakeSource('files', { tools: ['read', 'ask'] })]
  const kinds = new Map([['{}', plain]])
  const tracker = createListTracker({ kinds: () => kinds })
  const changed = () => tracker().length > 0
  expect(changed()).toBe(false)
  plain.become('unhealthy', 'it is down')
  expect(changed()).toBe(false)
  plain.become('healthy')
  // The same list in other objects.
  plain.offer({ tools: ['read'] })
  expect(changed()).toBe(false)
  kinds.set('{"sampling":{}}', capable)
  expect(changed()).toBe(false)
  for (const source of [plain, capable]) {
    source.offer({ tools: [{ name: 'read', description: 'changed' }] })
    expect([changed(), changed()]).toEqual([true, false])
  }
  plain.offer({ prompts: ['read'] })
  expect(changed()).toBe(true)
})
