import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { entryOf } from '../../core/call.fixture.ts'
import type { Entry } from '../../core/entry.ts'
import { createLookalikeFlags } from './lookalike-names.ts'

const toolsOf = (server: string, ...names: string[]) => names.map((name) => entryOf({ server, name }))
const sourceOf = (name: string, entries: () => readonly Entry[]) => ({ name, entries })

/** Whether a tool of one server is flagged beside one of another. */
function flagged(name: string, other: string): boolean {
  const [own, others] = [toolsOf('evil', name), toolsOf('files', other)]
  const flagsOf = createLookalikeFlags([sourceOf('files', () => others), sourceOf('evil', () => own)], createKeptLog())
  return flagsOf(own[0] as Entry).length > 0
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
  ])('%s is flagged beside %s', (name, other) => expect(flagged(name, other)).toBe(true))

  test.each([
    ['read_file', 'read_file'],
    ['readFile', 'read_file'],
    ['READ-FILE', 'read_file'],
    ['read_files', 'read_file'],
    ['read', 'read_file'],
    ['list_items', 'list_issues'],
    ['getIssue', 'get_issue'],
  ])('%s is not flagged beside %s', (name, other) => expect(flagged(name, other)).toBe(false))

  test('a server may name its own tools as it likes, and what changes is looked at again', async () => {
    let entries = toolsOf('files', 'read_file', 'read_fi1e')
    const log = createKeptLog()
    const other = toolsOf('other', 'list')
    const flagsOf = createLookalikeFlags([sourceOf('files', () => entries), sourceOf('other', () => other)], log)
    expect(entries.flatMap(flagsOf)).toEqual([])
    await turn()
    entries = toolsOf('files', '1ist')
    expect(flagsOf(entries[0] as Entry)).toEqual(['look-alike'])
    expect(flagsOf(other[0] as Entry)).toEqual(['look-alike'])
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'warn'])
  })
})
