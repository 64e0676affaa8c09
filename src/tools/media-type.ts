/** Media types by magic bytes, which are more reliable than file names and headers. */
const magicBytes: readonly (readonly [type: string, fits: (bytes: Buffer) => boolean])[] = [
  ['image/png', (bytes) => startsWithBytes(bytes, '\x89PNG\r\n\x1a\n')],
  ['image/jpeg', (bytes) => startsWithBytes(bytes, '\xff\xd8\xff')],
  ['image/gif', (bytes) => startsWithBytes(bytes, 'GIF87a') || startsWithBytes(bytes, 'GIF89a')],
  ['image/webp', (bytes) => startsWithBytes(bytes, 'RIFF') && startsWithBytes(bytes, 'WEBP', 8)],
  ['image/avif', (bytes) => startsWithBytes(bytes, 'ftypavif', 4) || startsWithBytes(bytes, 'ftypavis', 4)],
  ['audio/wav', (bytes) => startsWithBytes(bytes, 'RIFF') && startsWithBytes(bytes, 'WAVE', 8)],
  ['audio/flac', (bytes) => startsWithBytes(bytes, 'fLaC')],
  ['audio/ogg', (bytes) => startsWithBytes(bytes, 'OggS')],
  ['audio/webm', (bytes) => startsWithBytes(bytes, '\x1a\x45\xdf\xa3')],
  ['audio/mp4', (bytes) => startsWithBytes(bytes, 'ftyp', 4)],
  ['audio/mpeg', (bytes) => startsWithBytes(bytes, 'ID3') || isFrame(bytes, 0x02)],
  ['audio/aac', (bytes) => isFrame(bytes, 0x00)],
  ['application/pdf', (bytes) => startsWithBytes(bytes, '%PDF-')],
]

export const sniffedType = (bytes: Buffer): string | undefined => magicBytes.find(([, fits]) => fits(bytes))?.[0]

const startsWithBytes = (bytes: Buffer, text: string, at = 0) =>
  bytes.length >= at + text.length && bytes.toString('latin1', at, at + text.length) === text

/**
 * Whether an MPEG audio frame begins here: 11 sync bits, then the layer in bits 1-2 of the second byte, which is never
 * 0 for MP3 and always 0 for AAC.
 */
function isFrame(bytes: Buffer, layer: number): boolean {
  const [first, second = 0] = bytes
  return first === 0xff && (second & 0xe0) === 0xe0 && (second & 0x06) === layer
}
