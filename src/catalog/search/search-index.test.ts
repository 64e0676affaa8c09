import fc from 'fast-check'
import { expect, test } from 'vitest'
import { entryOf } from '../../core/call.fixture.ts'
import type { Definition } from '../../core/entry.ts'
import { createItem, type Item } from '../snapshot.ts'
import type { SearchQuestion } from './combine-scores.ts'
import { bestCandidates, SearchIndex } from './search-index.ts'
import { stem, tokens } from './tokenizer.ts'

const itemOf = (definition: Definition, server = 's'): Item => {
  const name = String(definition.name)
  return createItem(entryOf({ server, name, definition }), { name, origin: 'forwarded', stale: false })
}
const indexOf = (items: readonly Item[]) => {
  const index = new SearchIndex<Item>()
  index.update(items)
  return index
}
const rank = (items: readonly Item[], query: string, limit: number) =>
  indexOf(items).search(query, { limit, among: items })
const names = (tools: readonly Definition[], query: string, limit = 10) =>
  rank(
    tools.map((tool) => itemOf(tool)),
    query,
    limit,
  ).items.map(({ entry }) => entry.name)

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
  expect(tokens('日本語のMCPServer')).toEqual(['日本', '本語', '語の', 'mcp', 'server'])
  expect(tokens('हिन्दी Größe')).toEqual(['हिन्दी', 'große'])
})

test.each([
  ['创建一个新的日历事件', 'create'],
  ['事件を削除して', 'delete'],
  ['ファイルを読み込む', 'read'],
  ['일정을 삭제해 주세요', 'korean'],
  ['ลบไฟล์ออกจากโฟลเดอร์', 'thai'],
  ['resume el ultimo correo electronico', 'spanish'],
])('B4: the task "%s" finds the tool in its language first', (task, expected) => {
  const tools = [
    { name: 'create', description: '在用户的日历中创建事件。' },
    { name: 'delete', description: 'カレンダーから事件を削除します。' },
    { name: 'read', description: 'テキストファイルの内容を読み込みます。' },
    { name: 'korean', description: '캘린더에서 일정 삭제' },
    { name: 'thai', description: 'ใช้สำหรับลบไฟล์' },
    { name: 'spanish', description: 'Devuelve un resumen del último correo electrónico.' },
  ]
  expect(names(tools, task)[0]).toBe(expected)
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
      names(tools as Definition[], query)
    }),
  )
})

test('B4: words among the allowed values of a parameter count', () => {
  const unit = { enum: ['celsius', 'fahrenheit', 7, null] }
  const tools = [{ name: 'a' }, { name: 'b', inputSchema: { properties: { unit } } }]
  expect(names(tools, 'degrees in Fahrenheit')).toEqual(['b'])
})

test('B4: a task of several steps finds a tool for each of them first', () => {
  const tools = [
    { name: 'read_text_file', description: 'Reads a text file of the disk' },
    { name: 'read_binary_file', description: 'Reads a binary file of the disk' },
    { name: 'list_files', description: 'Lists text files on the disk' },
    { name: 'send_mail', description: 'Sends a mail' },
  ]
  const task = 'Read the text file report.txt on the disk of the server, then mail it'
  expect(names(tools, task, 2)).toEqual(['read_text_file', 'send_mail'])
  expect(names(tools, 'Read the text file report.txt on the disk. Mail it.', 2)).toEqual([
    'read_text_file',
    'send_mail',
  ])
})

test('B4: the best are counted out of all that match and that the caller may see', () => {
  const items = ['read_a', 'read_b', 'read_c', 'write_d'].map((name) => itemOf({ name }))
  const index = indexOf(items)
  const found = index.search('read', { limit: 2, among: items.slice(1) })
  expect(found.items.map(({ name }) => name)).toEqual(['read_b', 'read_c'])
  expect(found.total).toBe(2)
  expect(index.search('read', { limit: 1, among: items })).toEqual({ items: [items[0]], total: 3 })
  expect(index.search('read', { limit: 0, among: items })).toEqual({ items: [], total: 3 })
})

test('B4: after any changes the index ranks as one that was made of the same tools at once', () => {
  const word = fc.constantFrom('read', 'write', 'file', 'mail', 'send', 'weather', 'city', 'get', 'list')
  const text = fc.array(word, { maxLength: 6 }).map((words) => words.join(' '))
  const tool = fc.record({
    name: fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join('_')),
    description: text,
  })
  const pool = fc.array(tool, { minLength: 1, maxLength: 12 })
  const lists = fc.array(fc.array(fc.nat(11), { maxLength: 12 }), { minLength: 1, maxLength: 8 })
  const query = fc.array(text, { minLength: 1, maxLength: 3 }).map((steps) => steps.join('. '))
  const run = fc.property(pool, lists, query, fc.nat(12), (tools, rounds, asked, limit) => {
    const items = tools.map((definition, at) => itemOf(definition, `s${at % 3}`))
    const kept = new SearchIndex<Item>()
    for (const round of rounds) {
      const listed = [...new Set(round.flatMap((at) => items[at] ?? []))]
      kept.update(listed)
      expect(kept.search(asked, { limit, among: listed })).toEqual(rank(listed, asked, limit))
      const some = listed.filter((_, at) => at % 2 === 0)
      const fresh = indexOf(listed)
      expect(kept.search(asked, { limit, among: some })).toEqual(fresh.search(asked, { limit, among: some }))
    }
  })
  fc.assert(run)
})

test('V13: an update in turns pauses after 10 ms, and ends with the same ranking', async () => {
  const items = Array.from({ length: 100 }, (_, at) => itemOf({ name: `read_${at}`, description: 'reads a file' }))
  const index = new SearchIndex<Item>()
  let now = 0
  let worked = 0
  const turns: number[] = []
  const time = {
    // Each look at the clock is after one more tool.
    now: () => now++,
    async next() {
      turns.push(now - worked)
      worked = now
    },
  }
  await index.updateInTurns(items, time)
  expect(turns.length).toBeGreaterThanOrEqual(8)
  expect(Math.max(...turns)).toBeLessThanOrEqual(13)
  const asked = { limit: 5, among: items }
  expect(index.search('read file 42', asked)).toEqual(indexOf(items).search('read file 42', asked))
})

test('V13: a further score is added to the base, lowers nothing, and finds only tools that the caller may use', () => {
  const items = ['read_file', 'write_file', 'send_mail'].map((name) => itemOf({ name }))
  const index = indexOf(items)
  const sources = [
    ({ placeOf }: SearchQuestion) => {
      const places = ['s.send_mail', 's.write_file', 's.gone'].flatMap((tool) => placeOf(tool) ?? [])
      return { scores: new Map(places.map((place) => [place, 1])), weight: 0.3 }
    },
  ]
  const names = (among: readonly Item[], server?: string) =>
    index.search('read', { limit: 5, among, sources, server }).items.map(({ name }) => name)
  expect(names(items)).toEqual(['read_file', 'write_file', 'send_mail'])
  expect(names(items.slice(0, 2))).toEqual(['read_file', 'write_file'])
  expect(names(items, 'other')).toEqual([])
  const parts = index.explain('read', { limit: 2, among: items, sources })
  expect(parts.map(({ item, base, added }) => [item.name, base, added])).toEqual([
    ['read_file', 1, 0],
    ['write_file', 0, 0.3],
  ])
})

test('B4: the best matches are the first ones of a full sort', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), fc.nat(30), (values, limit) => {
      const order = (a: number, b: number) => (values[b] as number) - (values[a] as number) || a - b
      const all = [...values.keys()]
      expect(bestCandidates(all, limit, order)).toEqual([...all].sort(order).slice(0, limit))
    }),
  )
})
