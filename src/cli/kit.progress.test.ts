import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createOutput, createProgress } from './kit.ts'

test('B11: progress is one line on a terminal, rewritten only when it changes, and removed at the end', () => {
  const stderr = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns: 20 })
  {
    using progress = createProgress({ stderr, env: { TERM: 'xterm' } })
    progress.show('Waiting for one …')
    progress.show('Waiting for one …')
    progress.show('Waiting for quite a few servers …')
  }
  expect(stderr.read().split('\r\x1b[2K')).toEqual(['', 'Waiting for one …', 'Waiting for quite…', ''])
})

test.each([
  ['without a terminal', false, 'xterm'],
  ['on a terminal without escape sequences', true, 'dumb'],
])('B11: %s there is no progress', (_, isTTY, TERM) => {
  const stderr = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY })
  {
    using progress = createProgress({ stderr, env: { TERM } })
    progress.show('Waiting …')
  }
  expect(stderr.read()).toBeNull()
})

test('B11: a terminal that reports 0 columns has the usual width', () => {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns: 0 })
  expect(createOutput({ stdout: stream, stderr: stream }).width).toBe(80)
})
