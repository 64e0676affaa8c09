import { readFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { callOf, entryOf } from '../../core/call.fixture.ts'
import type { Caller } from '../../core/call.ts'
import type { Definition } from '../../core/entry.ts'
import { silentLog } from '../../core/log.ts'
import { durationUnits } from '../../lib/duration.ts'
import { type LearningSettings, SearchLearning } from './learning.ts'
import { LearningTable, learnedPath, maxOfTool } from './learning-table.ts'
import { SearchIndex } from './search-index.ts'

const settings: LearningSettings = { learn: true, pool: 'agent', halfLife: 30 * durationUnits.d, examples: {} }
const toolOf = (name: string, description: string, definition: object = {}) => {
  const entry = entryOf({ server: 's', name, definition: { name, description, ...definition } as Definition })
  return { name, entry, definition: entry.definition }
}
const tools = [
  toolOf('thermometer', 'Measures the temperature of a place'),
  toolOf('forecast', 'Predicts rain for a city'),
  toolOf('mail', 'Sends a message to a person'),
  toolOf('delete_file', 'Removes a file'),
]
const callerOf = (changes: Partial<Caller> = {}): Caller => ({ ...callOf().caller, ...changes })

interface Setup {
  readonly folder?: string
  readonly changes?: Partial<LearningSettings>
}

async function setUp({ folder, changes = {} }: Setup = {}) {
  const place = folder ?? (await temporaryFolder()).path
  const clock = createManualClock()
  const learning = new SearchLearning({
    folder: place,
    redact: (text) => text.replaceAll('hunter', ''),
    clock,
    log: silentLog,
  })
  onTestFinished(() => learning[Symbol.dispose]())
  const index = new SearchIndex()
  index.update(tools)
  const used = { ...settings, ...changes }
  const observer = learning.observer(used)
  const search = (query: string, caller = callerOf(), among = tools) => {
    if (among !== tools) index.update(among)
    return index.search(query, { limit: 4, among, sources: learning.expansion(caller, used) }).items
  }
  const call = (name: string, caller: Caller, kind: 'answered' | 'tool_error' | 'denied' = 'answered') => {
    const entry = tools.find((tool) => tool.name === name)?.entry ?? entryOf()
    const observed = { call: callOf({ entry, caller }), operation: 'call_tool', at: 0, start: 0, end: 0, ms: 0 }
    observer.ended({ ...observed, outcome: { kind }, trail: { steps: [] } })
  }
  return {
    ...{ learning, clock, folder: place },
    names: (...params: Parameters<typeof search>) => search(...params).map(({ name }) => name),
    call,
    /** A search that found a tool, and a call of it. */
    teach(query: string, name: string, caller = callerOf(), kind?: 'tool_error' | 'denied') {
      learning.searched(caller, query, tools)
      call(name, caller, kind)
    },
    save: () => clock.advance(1_000),
  }
}

test('V13: words of a search that led to a successful call find the tool, for the same agent', async () => {
  const { teach, save, names } = await setUp()
  expect(names('how warm outside')).toEqual([])
  teach('how warm is it outside', 'thermometer')
  await save()
  expect(names('is it warm outside')).toEqual(['thermometer'])
  expect(names('how warm outside', callerOf({ agent: 'other' }))).toEqual([])
})

test('V13: failed and refused calls, calls in other sessions and of tools that were not found teach nothing', async () => {
  const { teach, call, save, names, learning, clock } = await setUp()
  teach('how warm outside', 'thermometer', callerOf(), 'tool_error')
  teach('how warm outside', 'thermometer', callerOf({ session: 's3' }), 'denied')
  call('thermometer', callerOf({ session: 's2' }))
  call('thermometer', callerOf({ agent: 'other' }))
  learning.searched(callerOf({ session: 's4' }), 'how warm outside', tools.slice(1))
  call('thermometer', callerOf({ session: 's4' }))
  learning.searched(callerOf({ session: 's5' }), 'how warm outside', tools)
  await clock.advance(11 * durationUnits.m)
  call('thermometer', callerOf({ session: 's5' }))
  await save()
  expect(names('how warm outside')).toEqual([])
})

test('V13: what was learned is redacted, without numbers, readable by its owner only, and fades', async () => {
  const { teach, save, names, folder, clock } = await setUp()
  teach('how warm outside hunter2 at 4711', 'thermometer')
  await save()
  const database = new DatabaseSync(learnedPath(folder))
  expect(database.prepare('SELECT words FROM learned').all()).toEqual([{ words: 'warm outsid' }])
  database.close()
  const files = await readFile(learnedPath(folder), 'latin1')
  expect(files).not.toContain('hunter')
  await clock.advance(150 * durationUnits.d)
  expect(names('how warm outside')).toEqual([])
})

test('V13: tools that the caller may not use are not found through learning, and take no place of others', async () => {
  const { teach, save, names } = await setUp()
  for (const name of ['thermometer', 'forecast', 'mail', 'delete_file']) teach('how warm outside', name)
  await save()
  const few = tools.slice(3)
  expect(names('how warm outside', callerOf(), few)).toEqual(['delete_file'])
})

test('V13: a changed definition starts without history', async () => {
  const { teach, save, names } = await setUp()
  teach('how warm outside', 'thermometer')
  await save()
  const changed = [toolOf('thermometer', 'Measures the temperature of a place and sends it home'), ...tools.slice(1)]
  expect(names('how warm outside', callerOf(), changed)).toEqual([])
})

test('V13: one principal moves no ranking of others, with 10,000 poisoned searches; three that agree do', async () => {
  for (const [pool, searches] of [
    ['agent', 500],
    ['all', 10_000],
  ] as const) {
    const { teach, save, names, folder } = await setUp({ changes: { pool } })
    const victim = callerOf({ principal: 'victim', session: 'v' })
    const query = 'predict rain for a city'
    const before = ['how warm outside', query, 'remove a file'].map((text) => names(text, victim))
    const attacker = callerOf({ principal: 'attacker', session: 'a' })
    for (let count = 0; count < searches / 2; count++) {
      teach(`${query} ${'abcdefgh'[count % 8]}`, 'mail', attacker)
      teach(`how warm outside ${'abcdefgh'[count % 8]}`, 'mail', attacker)
    }
    await save()
    expect(['how warm outside', query, 'remove a file'].map((text) => names(text, victim))).toEqual(before)
    using table = new LearningTable(folder, () => {})
    expect(table.changed()).toHaveLength(maxOfTool)
    for (const principal of ['a', 'b', 'c'])
      teach('how warm outside', 'thermometer', callerOf({ principal, session: principal }))
    await save()
    expect(names('how warm outside', victim)).toEqual(['thermometer'])
    expect(names('how warm outside', { ...victim, agent: 'other' })).toEqual(pool === 'all' ? ['thermometer'] : [])
  }
})

test('V13: one principal keeps a few queries per tool, and another process forgets them', async () => {
  const { teach, save, names, folder, clock } = await setUp()
  for (let count = 0; count < 20; count++) teach(`warm ${'abcdefghijklmnopqrstuvwxyz'[count]}x outside`, 'thermometer')
  await save()
  expect(names('warm outside')).toEqual(['thermometer'])
  using table = new LearningTable(folder, () => {})
  expect(table.changed()).toHaveLength(maxOfTool)
  expect(table.forget({ tool: 's.mail' })).toBe(0)
  expect(table.forget({ agent: 'default', tool: 's.thermometer' })).toBe(maxOfTool)
  await clock.advance(5_000)
  expect(names('warm outside')).toEqual([])
})

test('V13: examples of the operator are found by everybody, also without learning', async () => {
  const examples = { 's.thermometer': ['how warm is it outside'], 's.gone': ['how warm'] }
  const { names } = await setUp({ changes: { learn: false, examples } })
  expect(names('how warm outside', callerOf({ principal: 'anyone', agent: 'other' }))).toEqual(['thermometer'])
  expect((await setUp({ changes: { learn: false } })).names('how warm outside')).toEqual([])
})
