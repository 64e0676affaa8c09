import { crc32, deflateSync, inflateSync } from 'node:zlib'
import { inPalette } from './palette.ts'

const signatureLength = 8

/**
 * The same picture in a third of the bytes. Browsers write PNG in a hurry, with three bytes for each pixel; pages are
 * flat and have few colours, so that one byte is enough.
 */
export function smallerPng(png: Buffer): Buffer {
  const chunks = [...chunksOf(png)]
  const header = Buffer.from(chunks.find(({ type }) => type === 'IHDR')?.data ?? [])
  // Eight bits for each of red, green and blue, without interlacing: what a browser writes of an opaque page.
  if (header.length === 0 || header.readUInt32BE(8) !== 0x08020000) return png
  const rowBytes = header.readUInt32BE(0) * 3
  const packed = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data))
  const { palette, rows } = inPalette(unfiltered(inflateSync(packed), rowBytes), rowBytes)
  header[9] = 3
  const parts = [
    ['IHDR', header],
    ['PLTE', palette],
    ['IDAT', deflateSync(rows, { level: 9, memLevel: 9 })],
    ['IEND', Buffer.alloc(0)],
  ] as const
  return Buffer.concat([png.subarray(0, signatureLength), ...parts.map(chunk)])
}

function* chunksOf(png: Buffer): Generator<{ type: string; data: Buffer }> {
  for (let at = signatureLength; at < png.length; ) {
    const length = png.readUInt32BE(at)
    yield { type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) }
    at += 12 + length
  }
}

function chunk([type, data]: readonly [string, Buffer]): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
}

/** Undoes the filter of every row: what is left of a pixel, above it, and above what is left of it was subtracted. */
function unfiltered(rows: Buffer, rowBytes: number): Buffer {
  const whole = Buffer.from(rows)
  for (let start = 0; start < whole.length; start += rowBytes + 1) {
    const filter = whole[start]
    whole[start] = 0
    for (let at = start + 1; at <= start + rowBytes; at++) {
      const inRow = at - start - 1
      const left = inRow >= 3 ? (whole[at - 3] ?? 0) : 0
      const above = start > 0 ? (whole[at - rowBytes - 1] ?? 0) : 0
      const corner = start > 0 && inRow >= 3 ? (whole[at - rowBytes - 4] ?? 0) : 0
      const guesses = [0, left, above, (left + above) >> 1, paeth(left, above, corner)]
      whole[at] = (whole[at] ?? 0) + (guesses[filter ?? 0] ?? 0)
    }
  }
  return whole
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner
  const [toLeft, toAbove, toCorner] = [guess - left, guess - above, guess - corner].map(Math.abs) as [
    number,
    number,
    number,
  ]
  if (toLeft <= toAbove && toLeft <= toCorner) return left
  return toAbove <= toCorner ? above : corner
}
