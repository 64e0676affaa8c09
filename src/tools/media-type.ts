/** Media types by magic bytes, which are more reliable than file names and headers. */
const magicBytes: readonly (readonly [type: string, start: RegExp])[] = [
  ['image/png', /^\x89PNG\r\n\x1a\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF.{4}WEBP/s],
  ['image/avif', /^.{4}ftypavi[fs]/s],
  ['audio/wav', /^RIFF.{4}WAVE/s],
  ['audio/flac', /^fLaC/],
  ['audio/ogg', /^OggS/],
  ['audio/webm', /^\x1a\x45\xdf\xa3/],
  ['audio/mp4', /^.{4}ftyp/s],
  // An MPEG frame begins with 11 sync bits. Bits 1-2 of its second byte, the layer, are 01 for MP3 and 00 for AAC.
  ['audio/mpeg', /^(?:ID3|\xff[\xe2\xe3\xea\xeb\xf2\xf3\xfa\xfb])/],
  ['audio/aac', /^\xff[\xe0\xe1\xe8\xe9\xf0\xf1\xf8\xf9]/],
  ['application/pdf', /^%PDF-/],
]

export function sniffedType(bytes: Buffer): string | undefined {
  const start = bytes.toString('latin1', 0, 16)
  return magicBytes.find(([, pattern]) => pattern.test(start))?.[0]
}
