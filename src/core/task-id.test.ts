import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readTaskId, writeTaskId } from './task-id.ts'

test('B2: a task id contains its server and tool, for any names', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.stringMatching(/^[\w-]+$/), (server, tool, sealed) => {
      const id = { server: server.toWellFormed(), tool: tool.toWellFormed(), sealed }
      expect(readTaskId(writeTaskId(id))).toEqual(id)
    }),
  )
})

test('B2: an invalid id yields undefined, and nothing throws', () => {
  for (const id of ['', '.', 'b20e', 'W10.x', 'eyJhIjoxfQ.x', 'WyJhIl0.x', 'WyJhIiwiYiJd', 'WyJhIiwiYiJd.x.y']) {
    expect(readTaskId(id), id).toBeUndefined()
  }
  fc.assert(
    fc.property(fc.string(), (id) => {
      readTaskId(id)
    }),
  )
})
