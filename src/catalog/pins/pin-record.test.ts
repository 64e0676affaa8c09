import { expect, test } from 'vitest'
import type { ServerConfig } from '../../config/schema.ts'
import { serverOrigin } from './pin-record.ts'

test('B6: a secret in the path of a URL is neither described nor kept, and two of them still differ', () => {
  const at = (url: string) => serverOrigin({ transport: 'http', url } as ServerConfig)
  const [one, other] = ['Zk3vQ9xLm2Rt7Wp5', 'Yb8Nc4Hd6Jf1Gs0K'].map((secret) => at(`https://x.test:8/s/${secret}/mcp`))
  expect(one?.text).toBe('https://x.test:8/s/[redacted]/mcp')
  expect(other?.hash).not.toBe(one?.hash)
  expect(at('https://a1b2c3d4e5f6g7.example.com/api-v2/mcp').text).toBe('https://a1b2c3d4e5f6g7.example.com/api-v2/mcp')
})
