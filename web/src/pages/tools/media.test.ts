import { expect, test } from 'vitest'
import { dataUrl } from './media.ts'

test('G10: images and sounds become data URLs', () => {
  expect(dataUrl({ data: 'aGk=', mimeType: 'image/png' }, 'image')).toBe('data:image/png;base64,aGk=')
  expect(dataUrl({ data: 'aGk=', mimeType: 'audio/wav' }, 'audio')).toBe('data:audio/wav;base64,aGk=')
})

test.each([
  [{ data: 'aGk=', mimeType: 'text/html' }],
  [{ data: 'aGk=', mimeType: 'image/png;base64,x' }],
  [{ data: 'a,b', mimeType: 'image/png' }],
  [{ data: 5, mimeType: 'image/png' }],
])('G10: %j is not an image', (block) => {
  expect(dataUrl(block, 'image')).toBeUndefined()
})
