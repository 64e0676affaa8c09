import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFrameReader, encodeFrame, type Frame } from './protocol.ts'

const read = (chunks: readonly Buffer[], limit: (kind: number) => number | undefined = () => 1000) => {
  const frames: Frame[] = []
  const broken: string[] = []
  const reader = createFrameReader({
    limit,
    frame: (frame) => frames.push(frame),
    broken: (reason) => broken.push(reason),
  })
  for (const chunk of chunks) reader.push(chunk)
  return { frames, broken }
}

describe('frames', () => {
  test('S7: are decoded wherever the stream is split', () => {
    const frame = fc.record({ kind: fc.nat(255), id: fc.nat(), payload: fc.uint8Array({ maxLength: 40 }) })
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), fc.integer({ min: 1, max: 30 }), (sent, size) => {
        const bytes = Buffer.concat(sent.map(({ kind, id, payload }) => encodeFrame(kind, id, payload)))
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
          bytes.subarray(n * size, (n + 1) * size),
        )
        const { frames, broken } = read(chunks)
        expect(frames).toEqual(sent.map((one) => ({ ...one, payload: Buffer.from(one.payload) })))
        expect(broken).toEqual([])
      }),
    )
  })

  test('S7: an oversized or unknown frame stops the reader before its payload arrives', () => {
    const good = encodeFrame(1, 0, 'x')
    const long = encodeFrame(1, 0, 'x'.repeat(2000)).subarray(0, 9)
    expect(read([good, long, good])).toMatchObject({ frames: { length: 1 }, broken: ['a message of 2000 bytes'] })
    const unknown = encodeFrame(9, 0)
    expect(read([good, unknown, unknown], (kind) => (kind === 1 ? 10 : undefined))).toMatchObject({
      frames: { length: 1 },
      broken: ['a message of kind 9'],
    })
  })
})
