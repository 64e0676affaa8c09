import { Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { createLog } from './log.ts'

function logged(pretty: boolean, level = 'info') {
  const lines: string[] = []
  const destination = new Writable({
    write(line, _, done) {
      lines.push(String(line))
      done()
    },
  })
  const log = createLog({ level, pretty, destination })
  return { log, lines }
}

test('machines get one JSON object a line', () => {
  const { log, lines } = logged(false)
  log.warn({ server: 'files' }, 'lost')
  expect(JSON.parse(lines[0] as string)).toMatchObject({ level: 40, server: 'files', msg: 'lost' })
})

test('people get one readable line, with the server first', () => {
  const { log, lines } = logged(true)
  log.warn({ server: 'files', attempt: 2, err: new Error('boom') }, 'lost')
  expect(stripVTControlCharacters(lines[0] as string)).toMatch(
    /^\d\d:\d\d:\d\d warn {2}files: lost \(attempt=2, err=boom\)\n$/,
  )
})

test('the level decides what is written', () => {
  const { log, lines } = logged(true, 'error')
  log.info({}, 'nothing')
  expect(lines).toEqual([])
})
