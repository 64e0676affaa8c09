import { expect, test } from 'vitest'
import { contentBytes, folderChildren, hasListedContent, malformedSkill, skillDigest } from './skills.ts'

const file = (path: string, size = 1) => ({ uri: `skill://a/pdf/${path}`, digest: `sha256:${'0'.repeat(64)}`, size })
const skill = {
  uri: 'skill://a/pdf/SKILL.md',
  frontmatter: { name: 'pdf', description: 'Reads PDF files.' },
  resources: [file('SKILL.md'), file('templates/a%20b.md', 2), file('templates/eu/c.txt')],
}

test.each([
  ['the uri of another file', { uri: 'skill://a/pdf/README.md' }],
  ['another name than its folder', { frontmatter: { name: 'pdfs', description: '' } }],
  ['a name with capitals', { uri: 'skill://a/PDF/SKILL.md', frontmatter: { name: 'PDF', description: '' } }],
  ['no description', { frontmatter: { name: 'pdf' } }],
  ['no resources', { resources: undefined }],
  ['resources without SKILL.md', { resources: [file('a.md')] }],
  ['a file outside its folder', { resources: [file('SKILL.md'), { ...file(''), uri: 'skill://a/pdfs/x' }] }],
  ['a file listed twice', { resources: [file('SKILL.md'), file('SKILL.md')] }],
  ['a digest of another form', { resources: [{ ...file('SKILL.md'), digest: 'sha256:00' }] }],
  ['a negative size', { resources: [file('SKILL.md', -1)] }],
  ['513 files', { resources: [file('SKILL.md'), ...Array.from({ length: 512 }, (_, at) => file(`${at}`))] }],
  ['more than 16 MiB', { resources: [file('SKILL.md', 16 * 1024 * 1024), file('a')] }],
])('W4: malformedSkill refuses a skill with %s', (_, change) => {
  expect(malformedSkill({ ...skill, ...change })).toEqual(expect.any(String))
})

test('W4: malformedSkill accepts listed and generated files', () => {
  expect(malformedSkill(skill)).toBeUndefined()
  expect(malformedSkill({ ...skill, resources: 'dynamic' })).toBeUndefined()
})

test('W4: folderChildren lists the direct children of a folder', () => {
  expect(folderChildren(skill.resources, 'skill://a/pdf/templates')).toEqual([
    { uri: 'skill://a/pdf/templates/a%20b.md', name: 'a b.md', mimeType: 'text/markdown', size: 2 },
    { uri: 'skill://a/pdf/templates/eu', name: 'eu', mimeType: 'inode/directory' },
  ])
  expect(folderChildren(skill.resources, 'skill://a/pdf/SKILL.md')).toBeUndefined()
})

test('W4: hasListedContent compares text and blobs with digest and size', () => {
  const bytes = Buffer.from([0xff, 0x00])
  const listed = { uri: 'x', digest: skillDigest(bytes), size: 2 }
  expect(hasListedContent(listed, { contents: [{ blob: bytes.toString('base64') }] })).toBe(true)
  expect(hasListedContent({ ...listed, size: 3 }, { contents: [{ blob: bytes.toString('base64') }] })).toBe(false)
  expect(hasListedContent(listed, { contents: [{ text: 'other' }] })).toBe(false)
  expect(contentBytes({ contents: [{ text: 'a' }, { text: 'b' }] }), 'not exactly one content').toBeUndefined()
  expect(contentBytes({ contents: [{ text: 'a', blob: 'YQ==' }] }), 'two contents in one').toBeUndefined()
})
