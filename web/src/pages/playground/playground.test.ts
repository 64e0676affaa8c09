import { expect, test } from 'vitest'
import { afterEvent, type PlaygroundRun } from './run.ts'
import { expandTemplate, variablesOf } from './uri-template.ts'

test('V11: the examples of RFC 6570 for text values', () => {
  const values = { var: 'value', hello: 'Hello World!', path: '/foo/bar', x: '1024', y: '768', empty: '' }
  for (const [template, expected] of [
    ['{var}', 'value'],
    ['{hello}', 'Hello%20World%21'],
    ['{+path}/here', '/foo/bar/here'],
    ['X{#hello}', 'X#Hello%20World!'],
    ['map?{x,y}', 'map?1024,768'],
    ['{/var,x}/here', '/value/1024/here'],
    ['{?x,y}', '?x=1024&y=768'],
    ['?fixed=yes{&x}', '?fixed=yes&x=1024'],
    ['{;x,y}', ';x=1024;y=768'],
    ['X{.x,y}', 'X.1024.768'],
    ['{var:3}', 'val'],
    ['{empty}{missing}', ''],
    ['{constructor}{?valueOf}', ''],
  ] as const) {
    expect([template, expandTemplate(template, values)]).toEqual([template, expected])
  }
  expect(variablesOf('a://{x}/{+x}{?y,z*}')).toEqual(['x', 'y', 'z'])
})

test('V11: a run collects progress and questions; its end leaves no question open', () => {
  const outcome = { call: 'c1', ms: 1, result: {}, error: null }
  let run: PlaygroundRun = {
    ...{ state: 'running', startedAt: 0, call: undefined, progress: [], asks: [], outcome: undefined },
  }
  const ask = (id: string) => ({ kind: 'ask', id, method: 'elicitation/create', params: {}, from: 'server' }) as const
  run = afterEvent(run, { kind: 'start', call: 'c1' })
  for (let progress = 0; progress < 120; progress++) {
    run = afterEvent(run, { kind: 'progress', progress, total: null, message: null })
  }
  run = [ask('a'), ask('b')].reduce(afterEvent, run)
  run = afterEvent(run, { kind: 'withdrawn', id: 'a' })
  expect([run.call, run.progress.length, run.asks.map(({ id }) => id)]).toEqual(['c1', 100, ['b']])
  expect(afterEvent(run, { kind: 'end', outcome })).toMatchObject({ state: 'done', asks: [], outcome })
})
