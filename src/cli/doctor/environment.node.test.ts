import { expect, test } from 'vitest'
import { nodeCheck, nodeFinding } from './environment.ts'

test.each([
  ['24.0.0', '>=24', 'ok'],
  ['25.1.2', '>=24', 'ok'],
  ['24.2.0', '>=24.2.0', 'ok'],
  ['24.10.0', '>=24.9', 'ok'],
  ['24.1.9', '>=24.2.0', 'problem'],
  ['22.21.0', '>=24', 'problem'],
])('B11: Node %s where %s is needed: %s', (running, wanted, status) => {
  expect(nodeFinding(running, wanted).status).toBe(status)
})

test('B11: an old Node version is reported with a remedy; the current one is accepted', async () => {
  expect(nodeFinding('22.21.0', '>=24')).toMatchObject({ remedy: 'nvm install 24' })
  expect(await nodeCheck.run(new AbortController().signal)).toMatchObject({
    status: 'ok',
    message: expect.stringContaining(process.versions.node),
  })
})
