import { expect, test } from 'vitest'
import { sniffedType } from './media-type.ts'

test.each([
  ['89504e470d0a1a0a', 'image/png'],
  ['ffd8ffe0', 'image/jpeg'],
  ['474946383961', 'image/gif'],
  ['524946460000000057454250', 'image/webp'],
  ['00000020667479706176696600', 'image/avif'],
  ['524946460000000057415645', 'audio/wav'],
  ['664c6143', 'audio/flac'],
  ['4f676753', 'audio/ogg'],
  ['1a45dfa3', 'audio/webm'],
  ['00000020667479704d344120', 'audio/mp4'],
  ['494433', 'audio/mpeg'],
  ['fffb90', 'audio/mpeg'],
  ['fff150', 'audio/aac'],
  ['255044462d', 'application/pdf'],
  ['52494646', undefined],
  ['', undefined],
  ['3c7376673e', undefined],
])('F17: bytes that begin with %s are %s', (hex, type) => {
  expect(sniffedType(Buffer.from(hex, 'hex'))).toBe(type)
})
