import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { commandLine, pluralize } from '../lib/message-text.ts'
import { span, took } from './table.ts'

test('B11: numbers and times are printed in words', () => {
  expect([pluralize(1, 'tool'), pluralize(0, 'tool'), pluralize(3, 'tool')]).toEqual(['1 tool', '0 tools', '3 tools'])
  expect([took(12.4), took(1499)]).toEqual(['12 ms', '1.5 s'])
  expect([span(90_000), span(3_600_000), span(5 * 86_400_000), span(10)]).toEqual([
    '1 minute',
    '1 hour',
    '5 days',
    '0 seconds',
  ])
})

test('B11: a command that is shown can be pasted: a shell reads the same words', () => {
  const word = fc.string({ unit: 'binary-ascii' }).filter((text) => !text.includes('\0') && text !== '')
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 4 }), (words) => {
      const line = `printf '%s\\0' ${commandLine(words)}`
      const read = execFileSync('sh', ['-c', line]).toString('latin1').split('\0').slice(0, -1)
      expect(read).toEqual(words)
    }),
    runs(10, 50),
  )
})
