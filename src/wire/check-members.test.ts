import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { AmbiguousMember, definedBytes, definedMembers, misspelling } from './check-members.ts'
import {
  answers,
  clientMessages,
  envelopeMembers,
  type MemberRules,
  serverNotifications,
  serverRequests,
} from './defined-members.ts'
import { latestLegacy, legacyRevisions, modernRevision } from './revisions.ts'

type Fields = Readonly<Record<string, unknown>>

const legacy = { revision: latestLegacy }
const modern = { revision: modernRevision }
const call = clientMessages['tools/call'] as MemberRules
const check = (level: MemberRules, value: Fields, scope: { revision: string } = legacy) => {
  const leftOut: string[] = []
  return { value: definedMembers(value, level, scope, leftOut), leftOut }
}

describe('V1: only defined members stay', () => {
  test('an object without others is the same object', () => {
    const params = { name: 'a', arguments: { Name: 1 }, _meta: { progressToken: 1, 'example.com/x': 1 } }
    expect(check(call, params).value).toBe(params)
  })

  test('unknown members are left out and named; those of _meta stay', () => {
    const { value, leftOut } = check(call, { name: 'a', later: 1, _meta: { 'example.com/x': 1 } })
    expect(value).toEqual({ name: 'a', _meta: { 'example.com/x': 1 } })
    expect(leftOut).toEqual(['later'])
  })

  test.each([
    ['tools/call', 'task', ['2025-11-25']],
    ['tools/call', 'inputResponses', [modernRevision]],
    ['resources/read', 'requestState', [modernRevision]],
    ['completion/complete', 'context', ['2025-06-18', '2025-11-25', modernRevision]],
  ])('%s has %s in %j alone', (method, member, revisions) => {
    for (const revision of [...legacyRevisions, modernRevision]) {
      const { value } = check(clientMessages[method] as MemberRules, { [member]: {} }, { revision })
      expect(Object.hasOwn(value, member), revision).toBe(revisions.includes(revision))
    }
  })

  test('an extension adds members only where both sides declared it', () => {
    const leftOut: string[] = []
    const scope = (declared: boolean) => ({ ...modern, extension: () => declared })
    expect(definedMembers({ task: {} }, call, scope(true), leftOut)).toEqual({ task: {} })
    expect(definedMembers({ task: {} }, call, scope(false), leftOut)).toEqual({})
  })

  test('members named like those of every object are unknown, not known', () => {
    const odd = JSON.parse('{"name":"a","__proto__":{"x":1},"constructor":1,"toString":2}')
    expect(check(call, odd)).toEqual({ value: { name: 'a' }, leftOut: ['__proto__', 'constructor', 'toString'] })
  })
})

describe('V1: a member that another parser may take for a known one is refused', () => {
  test.each([
    ['Name', 'letter case'],
    ['NAME', 'letter case'],
    ['ｎame', 'width'],
    ['name ', 'white space behind'],
    ['\u00a0name', 'white space before'],
    ['na\u200bme', 'zero width'],
    ['\ufeffname', 'a byte order mark'],
    ['name\u0000', 'a control character'],
    ['naм\u0065'.replace('м', 'm\u0301'), 'an accent'],
  ])('%j (%s)', (name) => {
    expect(() => check(call, { name: 'read', [name]: 'delete' })).toThrow(AmbiguousMember)
  })

  test.each([
    [clientMessages['tools/call'], 'argumentſ'],
    [clientMessages['tools/call'], 'tasK'],
    [clientMessages['resources/read'], 'URI'],
    [clientMessages['resources/read'], 'urı'],
    [clientMessages['tasks/get'], 'taskID'],
    [envelopeMembers, 'jſonrpc'],
    [envelopeMembers, 'ID'],
  ])('%# by Unicode case folding', (level, name) => {
    expect(misspelling(name, level as MemberRules)).toBeDefined()
  })

  test.each([
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'a', Name: 'b' } }, 'ref.Name'],
    ['completion/complete', { argument: { name: 'a', VALUE: 'b' } }, 'argument.VALUE'],
    ['completion/complete', { context: { Arguments: {} } }, 'context.Arguments'],
    ['tools/call', { _meta: { ProgressToken: 1 } }, '_meta.ProgressToken'],
    ['tools/call', { _meta: { 'Dev.Toolway/agent': 'root' } }, '_meta.Dev.Toolway/agent'],
    ['tools/call', { _meta: { 'dev.toolway /unheard': 'root' } }, '_meta.dev.toolway /unheard'],
    ['tools/call', { _meta: { 'io.modelContextProtocol/x': 1 } }, '_meta.io.modelContextProtocol/x'],
    ['tools/call', { _meta: { TraceParent: '' } }, '_meta.TraceParent'],
    ['tools/call', { inputResponses: { a: { action: 'decline', Action: 'accept' } } }, 'inputResponses.a.Action'],
    ['tools/call', { inputResponses: { a: { roots: [{ uri: 'a', URI: 'b' }] } } }, 'inputResponses.a.roots.URI'],
    ['initialize', { capabilities: { Sampling: {} } }, 'capabilities.Sampling'],
    ['initialize', { capabilities: { elicitation: { URL: {} } } }, 'capabilities.elicitation.URL'],
  ])('in %s: %j', (method, params, member) => {
    const thrown = (() => {
      try {
        return check(clientMessages[method] as MemberRules, params, modern)
      } catch (error) {
        return error
      }
    })()
    expect(thrown).toBeInstanceOf(AmbiguousMember)
    expect((thrown as AmbiguousMember).member).toBe(member)
  })
})

describe('V1: the bytes of an object', () => {
  const sampling = answers['sampling/createMessage'] as MemberRules

  test('stay as they came where nothing is left out', () => {
    const bytes = Buffer.from('{ "model":"m","content":{"type":"text","text":"\\u0061"},"_meta":{"x":1.0}}')
    expect(definedBytes(bytes, sampling, legacy, [])).toBe(bytes)
  })

  test('of what stays are kept where something is left out', () => {
    const bytes = Buffer.from('{"model":"m", "later":1, "content":{"type":"text" ,"n":12345678901234567890}}')
    expect(String(definedBytes(bytes, sampling, legacy, []))).toBe(
      '{"model":"m","content":{"type":"text" ,"n":12345678901234567890}}',
    )
  })

  test.each(['{"model":"a","m\\u006fdel":"b"}', '{"content":{"a":[[{"x":1,"x":2}]]}}', '{"_meta":{"b":1,"b":1}}'])(
    'are refused where a member occurs twice: %s',
    (text) => {
      expect(() => definedBytes(Buffer.from(text), sampling, legacy, [])).toThrow(/"(model|x|b)" occurs twice/)
    },
  )
})

/** The rules of all objects in all messages, including nested objects. */
const levels: readonly MemberRules[] = [clientMessages, serverRequests, serverNotifications, answers].flatMap((table) =>
  Object.values(table).flatMap(withInner),
)

function withInner(level: MemberRules): MemberRules[] {
  return [level, ...Object.values(level.members).flatMap(({ within }) => (within ? withInner(within) : []))]
}

/** Other spellings of a letter that some parser may read as this letter. */
const variants = (letter: string): string[] => {
  const code = letter.codePointAt(0) as number
  const wide = code > 0x20 && code < 0x7f ? [String.fromCodePoint(code + 0xfee0)] : []
  const special: Record<string, string[]> = { s: ['ſ'], k: ['\u212a'], i: ['ı', 'İ'] }
  return [letter, letter.toUpperCase(), letter.toLowerCase(), ...wide, ...(special[letter] ?? [])]
}

const around = fc.constantFrom('', '', '', ' ', '\t', '\u00a0', '\u200b', '\u2060', '\ufeff', '\u0000', '\ufe0f')

const spelling = (name: string) =>
  fc
    .tuple(around, ...[...name].map((letter) => fc.tuple(fc.constantFrom(...variants(letter)), around)), around)
    .map((parts) => parts.flat().join(''))

test('V1: every spelling of a known member that a lax reader folds to it is refused, before or behind the right one', () => {
  const cases = levels.flatMap((level) => Object.keys(level.members).map((name) => ({ level, name })))
  const sent = fc
    .constantFrom(...cases)
    .chain(({ level, name }) =>
      fc.record({ level: fc.constant(level), name: fc.constant(name), spelt: spelling(name) }),
    )
    .filter(({ name, spelt }) => name !== spelt)
  fc.assert(
    fc.property(sent, fc.boolean(), ({ level, name, spelt }, first) => {
      const value = first ? { [spelt]: 'theirs', [name]: 'ours' } : { [name]: 'ours', [spelt]: 'theirs' }
      const scope = { revision: modernRevision, extension: () => true }
      expect(() => definedMembers(value, level, scope, [])).toThrow(AmbiguousMember)
    }),
    runs(600, 30_000),
  )
})
