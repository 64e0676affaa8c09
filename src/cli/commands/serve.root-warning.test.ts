import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createOutput } from '../kit.ts'
import { warnOfRoot } from './serve.ts'

const said = (uid: number | undefined, json = false): string => {
  const stderr = new PassThrough()
  warnOfRoot(createOutput({ stdout: new PassThrough(), stderr }, json), uid)
  return String(stderr.read() ?? '')
}

test('B6: a warning is printed only for root, and not with --json', () => {
  expect(said(0)).toMatch(/root.*--user/)
  expect([said(1000), said(65_534), said(0, true)]).toEqual(['', '', ''])
})
