import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { nativeSection } from '../../config/schema/tools.ts'
import { builtInNames } from '../tool-source.ts'
import { echo } from '../tools.fixture.ts'
import { nativeTools } from './index.ts'

const { tools: names, fetch: config } = nativeSection.parse({})
const clock = createManualClock()
const fetch = { config, vet: () => Promise.reject(new Error('not here')) }

test('S2: the tools that the configuration names are served, as far as they can work here', () => {
  const others = [echo('generate'), echo('not_asked_for')]
  const served = (asked: readonly string[], more = {}) =>
    nativeTools({ names: asked, clock, ...more }).map(({ name }) => name)
  expect(served(names)).toEqual(['hash', 'time'])
  expect(served(names, { fetch, others })).toEqual(['hash', 'time', 'fetch', 'generate'])
  expect(served(['fetch'], { fetch, others })).toEqual(['fetch'])
})

test('S2: the names that plugins cannot take are those that can be configured', () => {
  expect([...names].sort()).toEqual([...builtInNames].sort())
})
