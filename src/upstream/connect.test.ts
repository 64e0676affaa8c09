import { expect, test } from 'vitest'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import type { ServerConfig } from '../config/schema.ts'
import { systemClock } from '../core/clock.ts'
import { createConnect } from './connect.ts'

test('B6: a secret that a process writes in another spelling reaches neither the error nor the log', async () => {
  const encoded = Buffer.from('a-secret-value').toString('base64')
  const log = createKeptLog()
  const connect = createConnect({
    name: 'files',
    config: {
      transport: 'stdio',
      command: process.execPath,
      args: ['-e', `console.error('bad key ${encoded}'); process.exit(1)`],
      env: { KEY: 'a-secret-value' },
    } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    redact: (text) => text.replaceAll(encoded, '[hidden]'),
    clock: systemClock,
    log,
  })
  const opening = connect({ capabilities: {}, owned: false }, new AbortController().signal)
  const error = await opening.catch((thrown) => thrown)
  expect(error.message).toContain('It last wrote: "bad key [hidden]".')
  expect(JSON.stringify(log.lines)).toContain('bad key [hidden]')
  expect(JSON.stringify(log.lines)).not.toContain(encoded)
})
