import { expect, test } from 'vitest'
import { createProfiles, kindOfAddress, kindOfAnswer, ServerProfile } from './server-profile.ts'

test('S4: a server profile outlives its model', () => {
  const profileOf = createProfiles()
  const profile = profileOf('http://a/v1', 'm', 'auto')
  profile.learn({ form: { constraint: 'schema' }, content: 'x' }, [{ form: { constraint: 'strict' }, content: 'x' }])
  expect(profileOf('http://a/v1', 'm', 'auto').formsFor('y')[0]).toBe('schema')
  expect(profileOf('http://a/v1', 'other', 'auto').formsFor('y')[0]).toBe('strict')
  expect(profileOf('http://b/v1', 'm', 'auto').formsFor('y')[0]).toBe('strict')
})

test('S4: the last form stays available', () => {
  const profile = new ServerProfile('http://a/v1', 'none')
  profile.learn({ content: '' }, [{ form: { constraint: 'prompt' }, content: 'x' }])
  expect(profile.formsFor('x')).toEqual(['prompt'])
})

test('S4: a known kind is not replaced', () => {
  const profile = new ServerProfile('https://api.openai.com/v1', 'auto')
  profile.recognise('ollama')
  expect(profile.kind).toBe('openai')
})

test.each([
  ['https://api.openai.com/v1', 'openai'],
  ['https://mine.openai.azure.com/openai/v1', 'openai'],
  ['http://127.0.0.1:11434/v1', 'ollama'],
  ['http://127.0.0.1:8000/v1', 'unknown'],
  ['https://evil-api.openai.com.example/v1', 'unknown'],
])('S4: the address %s belongs to %s', (address, kind) => {
  expect(kindOfAddress(new URL(address))).toBe(kind)
})

test.each<readonly [Record<string, string>, unknown, string]>([
  [{ 'openai-version': '2020-10-01' }, {}, 'openai'],
  [{ server: 'llama.cpp' }, {}, 'llama.cpp'],
  [{}, { timings: {} }, 'llama.cpp'],
  [{}, { system_fingerprint: 'b5000-1a2b3c' }, 'llama.cpp'],
  [{}, { system_fingerprint: 'fp_ollama' }, 'ollama'],
  [{}, { system_fingerprint: 'local', usage: null }, 'mistral.rs'],
  [{}, { choices: [{ stop_reason: null }] }, 'vllm'],
  [{ server: 'uvicorn' }, { choices: ['x'] }, 'unknown'],
  [{}, null, 'unknown'],
])('S4: an answer with %j and %j comes from %s', (headers, first, kind) => {
  expect(kindOfAnswer((name) => headers[name], first)).toBe(kind)
})
