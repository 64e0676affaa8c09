import { expect, test } from 'vitest'
import { firstBlob, resultText } from './call.ts'

const image = { type: 'image', mimeType: 'image/png', data: Buffer.alloc(12_300).toString('base64') }

test('B11: text is printed plainly, other content as a one-line note', () => {
  const content = [
    { type: 'text', text: 'Hello\nworld' },
    image,
    { type: 'audio', mimeType: 'audio/wav', data: 'AA==' },
    { type: 'resource', resource: { uri: 'file:///a', text: 'inside' } },
    { type: 'resource', resource: { uri: 'file:///b', mimeType: 'application/zip', blob: 'AAAA' } },
    { type: 'resource_link', uri: 'file:///c', name: 'c' },
    { type: 'later' },
  ]
  expect(resultText({ content })).toBe(
    'Hello\nworld\n[image/png, 12 KB]\n[audio/wav, 1 byte]\ninside\n[application/zip, 3 bytes, file:///b]\n[c: file:///c]\n[later]',
  )
})

test('B11: structured content is printed where there is no text', () => {
  expect(resultText({ structuredContent: { a: 1 } })).toBe('{\n  "a": 1\n}')
  expect(resultText({ content: [{ type: 'text', text: 'one' }], structuredContent: { a: 1 } })).toBe('one')
  expect(resultText({ content: [image], structuredContent: { a: 1 } })).toBe('[image/png, 12 KB]\n{\n  "a": 1\n}')
  expect(resultText({})).toBe('')
})

test('B11: the first blob is the one to write to a file', () => {
  const zip = { type: 'resource', resource: { uri: 'file:///b', blob: 'AAAA' } }
  expect(firstBlob({ content: [{ type: 'text', text: 'x' }, zip, image] })).toEqual({
    mimeType: 'application/octet-stream',
    bytes: Buffer.alloc(3),
  })
  expect(firstBlob({ content: [{ type: 'text', text: 'x' }] })).toBeUndefined()
})
