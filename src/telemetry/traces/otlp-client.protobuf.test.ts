import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { decodeRequest } from './otlp.fixture.ts'
import {
  createOtlpClient,
  createTraceEncoder,
  fixed32Member,
  fixed64Member,
  hexMember,
  intAttribute,
  intMember,
  rejectedSpans,
  textMember,
} from './otlp-client.ts'
import { startReceiver } from './receiver.fixture.ts'

test.each([
  ['bytes', hexMember(2, '0123456789abcdef'), '1208 0123456789abcdef'],
  ['text beyond ASCII', textMember(5, 'é😀'), '2a06 c3a9 f09f9880'],
  ['text of 127 bytes', textMember(1, 'a'.repeat(127)), `0a7f ${'61'.repeat(127)}`],
  ['text of 300 bytes', textMember(1, 'a'.repeat(300)), `0aac02 ${'61'.repeat(300)}`],
  ['an enumeration', intMember(6, 2), '3002'],
  ['a field above 15', fixed32Member(16, 257), '8501 01010000'],
  ['a time', fixed64Member(8, 2n ** 64n - 1n), '41 ffffffffffffffff'],
  ['an attribute', intAttribute(9, 'n', 300), '4a08 0a016e 120318ac02'],
])('V22: %s is encoded as protobuf defines', (_, encoded, hex) => {
  expect(Buffer.from(encoded, 'latin1').toString('hex')).toBe(hex.replaceAll(' ', ''))
})

test('V22: a request has its resource, scope and spans, whatever their size', () => {
  const names = ['a'.repeat(127), 'é'.repeat(20_000), 'c']
  const encode = createTraceEncoder({ 'service.name': 'mine' }, '1.2.3')
  expect(decodeRequest(encode(names.map((name) => textMember(5, name))))).toEqual({
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: 'mine' } }] },
        scopeSpans: [{ scope: { name: 'toolway', version: '1.2.3' }, spans: names.map((name) => ({ name })) }],
      },
    ],
  })
})

test.each([
  ['', 0],
  ['0a00', 0],
  ['0a0308ac02', 300],
  ['0a06120462656361', 0],
])('V22: the response %s rejects %d spans', (hex, rejected) => {
  expect(rejectedSpans(Buffer.from(hex, 'hex'))).toBe(rejected)
})

test('V22: gzip compresses requests, and a receiver that refuses them is named with the reason', async () => {
  await using receiver = await startReceiver()
  receiver.answers(() => ({ status: 415 }))
  const url = new URL(receiver.url)
  const delivery = { gzip: true, timeoutMs: 10_000 } as const
  await using client = createOtlpClient({ url, headers: {}, delivery, clock: createManualClock() })
  const body = Buffer.from('a request')
  expect(await client.send(body, new AbortController().signal)).toEqual({ kind: 'refused', why: 'HTTP 415' })
  expect(receiver.received[0]?.headers).toMatchObject({
    'content-type': 'application/x-protobuf',
    'content-encoding': 'gzip',
  })
  expect(gunzipSync(receiver.received[0]?.body as Buffer)).toEqual(body)
})
