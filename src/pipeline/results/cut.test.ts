import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { cutJson, cutText, headAndTail, type Missing, sharedRoom } from './cut.ts'

const noMissing = (): Missing => ({ characters: 0, ofCharacters: 0 })
const lines = (count: number) => Array.from({ length: count }, (_, at) => `line ${at}`).join('\n')

test('W7: cutText keeps the first and the last lines, and counts what it leaves out', () => {
  const missing = noMissing()
  const text = cutText(lines(1000), 500, missing)
  expect(text).toMatch(
    /^line 0\nline 1\n[\s\S]*line \d+\n… \d+ characters, \d+ lines, left out here …\nline \d+\n[\s\S]*line 999$/,
  )
  expect(text.length).toBeLessThanOrEqual(500)
  const kept = text.split('\n').length - 1
  expect(missing).toMatchObject({ lines: expect.closeTo(1000 - kept, -0.5), ofLines: 1000 })
})

test('W7: cutText keeps a table’s head and whole rows', () => {
  const table = ['| id | name |', '| --- | --- |', ...Array.from({ length: 200 }, (_, id) => `| ${id} | row ${id} |`)]
  const cut = cutText(table.join('\n'), 800, noMissing()).split('\n')
  expect(cut.slice(0, 2)).toEqual(table.slice(0, 2))
  expect(cut.filter((line) => !line.startsWith('…')).every((line) => table.includes(line))).toBe(true)
})

test('W7: cutText cuts one long line, but no character', () => {
  const text = cutText('😀'.repeat(1000), 301, noMissing())
  expect(text.isWellFormed()).toBe(true)
  expect(text).toMatch(/^(?:😀)+\n… \d+ characters left out here …\n(?:😀)+$/u)
})

test('W7: cutText cuts JSON between elements or members, and inside the large one', () => {
  const rows = Array.from({ length: 300 }, (_, id) => ({ id, big: 12345678901234567890n.toString() }))
  const json = `{"total":12345678901234567890,"rows":${JSON.stringify(rows)},"next":null}`
  const missing = noMissing()
  const cut = cutText(json, 1000, missing)
  expect(cut.length).toBeLessThanOrEqual(1000)
  expect(cut).toContain('"total":12345678901234567890,')
  const { rows: kept, next } = JSON.parse(cut)
  expect([kept[0], kept.at(-1), next]).toEqual([rows[0], rows[299], null])
  expect(missing).toMatchObject({ items: 300 - kept.length + 1, ofItems: 300 })
  const map = Object.fromEntries(Array.from({ length: 300 }, (_, id) => [`key ${id}`, id]))
  expect(JSON.parse(cutText(JSON.stringify(map), 500, noMissing()))).toMatchObject({
    'key 0': 0,
    '…': expect.stringMatching(/^… \d+ of 300 members left out here …$/),
    'key 299': 299,
  })
})

test('W7: cutJson without marks is JSON with the same types, and about as long as it may be', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), fc.integer({ min: 300, max: 2_000 }), (text, room) => {
      const big = `{"rows":[${Array(50).fill(text).join()}],"text":${JSON.stringify(text.repeat(50))}}`
      const value = JSON.parse(cutJson(Buffer.from(big), room, { missing: noMissing(), marks: false }))
      expect([Array.isArray(value.rows), typeof value.text]).toEqual([true, 'string'])
    }),
    runs(100, 1000),
  )
  const words = JSON.stringify({ text: lines(500), list: Array(500).fill('word') })
  const cut = cutJson(Buffer.from(words), 1000, { missing: noMissing(), marks: false })
  expect(cut.length).toBeLessThanOrEqual(1100)
  expect(new Set(JSON.parse(cut).list)).toEqual(new Set(['word']))
})

test('W7: the room is shared so that small parts stay whole', () => {
  expect(sharedRoom([10, 20, 30], 60)).toBe(Number.POSITIVE_INFINITY)
  expect(sharedRoom([10, 100, 200], 110)).toBe(50)
  expect(headAndTail([10, 10, 10, 10, 10, 10], 30)).toEqual({ head: 2, tail: 1 })
  expect(headAndTail([100, 10, 10], 30)).toEqual({ head: 1, tail: 1 })
})
