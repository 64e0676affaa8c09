import { describe, expect, test } from 'vitest'
import { ToolNames } from './lookalike-names.ts'

/** What a tool of one server resembles beside one of another. */
function resembled(name: string, other: string): string | undefined {
  const names = new ToolNames()
  names.add('files', other)
  names.add('evil', name)
  return names.resembling('evil', name)
}

describe('B5: names that look like those of another server', () => {
  test.each([
    ['read_fi1e', 'read_file'],
    ['read_fiIe', 'read_file'],
    ['rеad_file', 'read_file'],
    ['reαd_file', 'read_file'],
    ['ｒｅａｄ_file', 'read_file'],
    ['rernove_file', 'remove_file'],
    ['d0wnload', 'download'],
    ['dose_issue', 'close_issue'],
    ['vvrite', 'write'],
    ['1ist_i55ues', 'list_issues'],
    ['files__read_file', 'read_file'],
    ['files.read_file', 'read_file'],
    ['fi1es_read_file', 'read_file'],
  ])('%s looks like %s', (name, other) => expect(resembled(name, other)).toBe(`files.${other}`))

  test.each([
    ['read_file', 'read_file'],
    ['readFile', 'read_file'],
    ['READ-FILE', 'read_file'],
    ['read_files', 'read_file'],
    ['read', 'read_file'],
    ['list_items', 'list_issues'],
    ['getIssue', 'get_issue'],
  ])('%s does not look like %s', (name, other) => expect(resembled(name, other)).toBeUndefined())

  test('a server may name its own tools as it likes', () => {
    const names = new ToolNames()
    for (const name of ['read_file', 'read_fi1e']) names.add('files', name)
    expect(names.resembling('files', 'read_fi1e')).toBeUndefined()
  })
})
