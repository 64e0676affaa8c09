import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Definition } from '../core/entry.ts'
import { createIndex } from './search.ts'
import { fakeSource, snapshotOf } from './source.fixture.ts'
import { stem } from './stem.ts'
import { tokens } from './tokens.ts'

const indexOf = (tools: readonly Definition[]) =>
  createIndex(snapshotOf([fakeSource('s', { tools })]).snapshot.items.tool)
const names = (tools: readonly Definition[], query: string, limit = 10) =>
  indexOf(tools)
    .search(query, limit, () => true)
    .map(({ entry }) => entry.name)

test('B4: forms of a word meet in one stem', () => {
  const families = [
    ['calculate', 'calculates', 'calculated', 'calculating', 'calculation', 'calculations', 'calculator'],
    ['file', 'files', 'filed', 'filing'],
    ['copy', 'copies', 'copied'],
    ['run', 'runs', 'running'],
    ['subscription', 'subscriptions'],
    ['hope', 'hoping', 'hoped', 'hopeful', 'hopefulness'],
  ]
  for (const family of families) expect([...new Set(family.map(stem))]).toHaveLength(1)
})

test.each([
  ['consistency', 'consist'],
  ['knightly', 'knight'],
  ['general', 'general'],
  ['generate', 'generat'],
  ['hopping', 'hop'],
  ['hoping', 'hope'],
  ['used', 'use'],
  ['ties', 'tie'],
  ['cries', 'cri'],
  ['gas', 'gas'],
  ['skies', 'sky'],
  ['succeeded', 'succeed'],
  ['sensibility', 'sensibl'],
  ['analogously', 'analog'],
  ['replacement', 'replac'],
  ['controlling', 'control'],
  ['youth', 'youth'],
  ['boy', 'boy'],
  ['at', 'at'],
  ['naïve', 'naïve'],
])('B4: the stem of %s is %s', (word, expected) => {
  expect(stem(word)).toBe(expected)
})

test('B4: names are taken apart and empty words left out', () => {
  expect(tokens('getUserInfo')).toEqual(['get', 'user', 'info'])
  expect(tokens('get_user-info.v2')).toEqual(['get', 'user', 'info', 'v2'])
  expect(tokens('HTTPServer parseJSONFile')).toEqual(['http', 'server', 'pars', 'json', 'file'])
  expect(tokens('Please do this for me')).toEqual([])
  expect(tokens('Straße 東京 123')).toEqual(['straße', '東京', '123'])
})

test('B4: names count more than descriptions, and parameters count', () => {
  const mail = { name: 'send_mail', description: 'Sends a message' }
  const note = { name: 'write_note', description: 'Writes a mail or a note' }
  const trip = {
    name: 'book',
    inputSchema: { type: 'object', properties: { airportCode: { description: 'where the flight departs' } } },
  }
  const deep = {
    name: 'nested',
    inputSchema: { properties: { filter: { type: 'array', items: { properties: { colour: {} } } } } },
  }
  const tools = [note, mail, trip, deep]
  expect(names(tools, 'mail')).toEqual(['send_mail', 'write_note'])
  expect(names(tools, 'departing flights')).toEqual(['book'])
  expect(names(tools, 'airports')).toEqual(['book'])
  expect(names(tools, 'colours')).toEqual(['nested'])
  expect(names(tools, 'mail', 1)).toEqual(['send_mail'])
  expect(names(tools, 'zebra')).toEqual([])
  expect(names([], 'mail')).toEqual([])
})

test('B4: rare words decide, repeated ones do not', () => {
  const tools = [
    { name: 'a', description: 'get data data data data' },
    { name: 'b', description: 'get weather data' },
    { name: 'c', description: 'get data' },
  ]
  expect(names(tools, `${'data '.repeat(50)} weather`)[0]).toBe('b')
})

test('B4: any definition and any query can be read', () => {
  const definition = fc.record({
    name: fc.string(),
    description: fc.anything(),
    inputSchema: fc.anything(),
    title: fc.anything(),
  })
  fc.assert(
    fc.property(fc.array(definition, { maxLength: 5 }), fc.string(), (tools, query) => {
      indexOf(tools as Definition[]).search(query, 5, () => true)
    }),
  )
})
