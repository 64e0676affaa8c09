import { expect, test } from 'vitest'
import { Json } from '../../json/json.ts'
import { readProgramCall, readProgramCalls, resultJson } from './program-messages.ts'

const odd = '{"n":1326954198812345679, "f":1.0}'

test('V5: the arguments of a program’s calls keep the bytes in which it wrote them', () => {
  expect(String(readProgramCall(`{"tool":"a.b","args":${odd}}`).args?.bytes)).toBe(odd)
  const [first, second] = readProgramCalls(`[{"tool":"a","args":${odd}} , {"tool":"b"}]`, 2)
  expect([String(first?.args?.bytes), second?.args]).toEqual([odd, undefined])
})

test('V5: a result reaches the program with the bytes that the server wrote', () => {
  expect(resultJson(Json.raw(Buffer.from(`{"content":[],"structuredContent":${odd}}`)))).toBe(odd)
  expect(resultJson(Json.of({ content: [{ type: 'text', text: odd }] }))).toBe(odd)
})

test('V5: a call whose arguments can be read in two ways is refused', () => {
  expect(() => readProgramCall('{"tool":"a","args":{"path":"/data","p\\u0061th":"/etc"}}')).toThrow(/duplicate/)
})
