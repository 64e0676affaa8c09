import { hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import type { AuditEnd } from '../core/audit.ts'
import { jsonValue } from '../json/parse-json.ts'
import { beginOf, endOf } from './audit.fixture.ts'
import { argumentsJson, EventFormat, maxArguments, maxLine, parseSealedLine, sealLine, zeroHash } from './record.ts'

const place = { seq: 7, time: new Date(0).toISOString(), prev: zeroHash }
const same = (given: Record<string, unknown>): unknown => given
const redact = (text: string) => text.replaceAll('hunter2', '[redacted]')
const format = new EventFormat(() => redact)
const lineOf = (body: string) => Buffer.from(sealLine(body).line.trimEnd())

test('F11: a record has the fields of its event, its phase, time, number and the hash before; all of it checks', () => {
  const body = format.end(endOf({ write: true, rule: 'agents.dev.allow', reason: 'why' }))
  const opened = parseSealedLine(lineOf(body(place)))
  expect(opened).toMatchObject({ ok: true, record: { ...endOf({ write: true }), ...place, phase: 'after' } })
})

test('V8, F11: a record with all of its fields is canonical', () => {
  const more = {
    approval: 'once',
    approver: 'key:alice',
    asked: 'a',
    attempts: ['ok'],
    detail: 'd',
    findings: ['f'],
  } as const
  const event = endOf({ ...more, anonymous: true, address: '::1', parent: 'p', suppressed: 1, tokens: 1 })
  const opened = parseSealedLine(lineOf(format.end(event)(place)))
  expect(opened).toMatchObject({ ok: true, record: { approval: 'once', approver: 'key:alice' } })
})

test('F11: the line of any event is canonical and not longer than the limit', () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.constantFrom('\u0001', '"', '€', '😀').map((c) => c.repeat(9_999)),
  )
  fc.assert(
    fc.property(text, text, text, fc.dictionary(fc.string(), fc.jsonValue()), (agent, tool, rule, given) => {
      const described = argumentsJson({ ...given, text: agent }, same)
      for (const event of [beginOf({ agent, tool, server: rule }), endOf({ agent, tool, rule, reason: tool })]) {
        const line = lineOf(format.begin(event, described)(place))
        expect(parseSealedLine(line).ok).toBe(true)
        expect(line.length).toBeLessThan(maxLine)
      }
    }),
    runs(10, 50),
  )
})

test('F11: even with every text at its worst a line stays within the limit', () => {
  const worst = '\u0001'.repeat(10_000)
  const texts = { call: worst, parent: worst, agent: worst, principal: worst, address: worst, operation: worst }
  const event = {
    ...endOf(),
    ...texts,
    server: worst,
    tool: worst,
    reason: worst,
    rule: worst,
    code: worst as 'TIMEOUT',
  }
  const described = argumentsJson({ text: '€'.repeat(maxArguments - 20) }, same)
  expect(lineOf(format.begin(event, described)(place)).length).toBeLessThan(maxLine)
})

test('F11: long texts are cut, and two with the same beginning stay different', () => {
  const of = (tool: string) => (jsonValue(format.begin(beginOf({ tool }))(place)) as { tool: string }).tool
  const start = 'x'.repeat(5000)
  expect(of(`${start}a`)).toHaveLength(2048)
  expect(of(`${start}a`)).not.toBe(of(`${start}b`))
})

test('F11: long arguments are cut to their beginning and their length', () => {
  const described = argumentsJson({ text: 'é'.repeat(20_000) }, same)
  expect(jsonValue(described ?? '')).toEqual({
    truncated: true,
    bytes: 40_011,
    sha256: hash('sha256', JSON.stringify({ text: 'é'.repeat(20_000) })),
    start: `{"text":"${'é'.repeat(4096 - 9)}`,
  })
})

test('F11: arguments nested as deeply as is allowed make a sound record, deeper ones are dropped', () => {
  const nested = (depth: number) => ({ deep: jsonValue('['.repeat(depth) + ']'.repeat(depth)) as unknown })
  const described = [255, 256].map((depth) => argumentsJson(nested(depth), same) ?? '')
  expect(described[1]).toBe('"dropped"')
  for (const text of described) expect(parseSealedLine(lineOf(format.begin(beginOf(), text)(place))).ok).toBe(true)
  expect(described[0]).toMatch(/^\{"deep":\[/)
})

test('B6: where the redactor fails, or gives what cannot be written, nothing of the arguments gets through', () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const failing = () => {
    throw new Error('no')
  }
  expect(argumentsJson({ secret: 1 }, failing)).toBe('"dropped"')
  expect(argumentsJson(circle, same)).toBe('"dropped"')
  expect(argumentsJson({ secret: 1 }, () => undefined)).toBeUndefined()
  expect(argumentsJson(undefined, failing)).toBeUndefined()
})

describe('B6: names are redacted', () => {
  const written = (event: AuditEnd) => format.end(event)(place)

  test.each(['agent', 'asked', 'operation', 'principal', 'reason', 'rule', 'server', 'tool'] as const)('%s', (name) => {
    expect(jsonValue(written(endOf({ [name]: 'a hunter2 b' })))).toMatchObject({ [name]: 'a [redacted] b' })
  })

  test('again when the secrets have changed', () => {
    let secret = 'hunter2'
    const now = () => {
      const current = secret
      return (text: string) => text.replaceAll(current, '[redacted]')
    }
    let redactor = now()
    const changing = new EventFormat(() => redactor)
    const tool = () =>
      (jsonValue(changing.end(endOf({ tool: 'a hunter2 and hunter3' }))(place)) as { tool: string }).tool
    expect(tool()).toBe('a [redacted] and hunter3')
    secret = 'hunter3'
    redactor = now()
    expect(tool()).toBe('a hunter2 and [redacted]')
  })

  test('F11: records about other subjects with the same tool are not mixed up', () => {
    const written = (event: Partial<AuditEnd>) => jsonValue(format.end(endOf({ tool: 't', ...event }))(place))
    for (const event of [
      { agent: 'a' },
      { agent: 'b' },
      { principal: 'p' },
      { address: '::1' },
      { anonymous: true },
    ] as const)
      expect(written(event)).toMatchObject(event)
    for (const event of [
      { server: 'one' },
      { server: 'two' },
      { write: true },
      { operation: 'read_resource' },
    ] as const)
      expect(written(event)).toMatchObject(event)
  })

  test('before they are cut, so that no half of a secret is left', () => {
    for (let length = 400; length < 520; length++) {
      expect(written(endOf({ tool: 'x'.repeat(length) + 'hunter2'.repeat(90), brief: true }))).not.toMatch(/hunt/)
    }
  })

  test('and dropped where the redactor fails', () => {
    const failing = () => {
      throw new Error('no')
    }
    expect(jsonValue(new EventFormat(() => failing).end(endOf({ tool: 'hunter2' }))(place))).toMatchObject({
      tool: 'dropped',
      decision: 'ALLOW',
    })
  })
})

test('B7: records of refused calls are short, also for long arguments and names', () => {
  const described = argumentsJson({ text: '€'.repeat(15_000) }, same, true)
  expect(jsonValue(described ?? '')).toEqual({
    truncated: true,
    bytes: 45_011,
    sha256: hash('sha256', JSON.stringify({ text: '€'.repeat(15_000) })),
    start: `{"text":"${'€'.repeat(512 - 9)}`,
  })
  expect(argumentsJson({ text: 'short' }, same, true)).toBe('{"text":"short"}')
  const event = beginOf({ tool: 'x'.repeat(9_000), brief: true })
  const record = jsonValue(format.begin(event)(place)) as { tool: string }
  expect(record.tool).toHaveLength(512)
  expect(record).not.toHaveProperty('brief')
})
