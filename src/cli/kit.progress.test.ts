import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createProgress } from './kit.ts'

test('B11: progress is one line on a terminal, rewritten only when it changes, and removed at the end', () => {
  const stderr = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns: 20 })
  {
    using progress = createProgress({ stderr })
    progress.show('Waiting for one …')
    progress.show('Waiting for one …')
    progress.show('Waiting for quite a few servers …')
  }
  expect(stderr.read().split('\r\x1b[2K')).toEqual(['', 'Waiting for one …', 'Waiting for quite…', ''])
})

test('B11: without a terminal there is no progress', () => {
  const stderr = new PassThrough({ encoding: 'utf8' })
  {
    using progress = createProgress({ stderr })
    progress.show('Waiting …')
  }
  expect(stderr.read()).toBeNull()
})
