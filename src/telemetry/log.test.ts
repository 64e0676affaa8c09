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

test('a readable line contains a thrown value that is not an error', () => {
  const { log, lines } = logged(true)
  log.warn({ err: 'closed' }, 'lost')
  expect(stripVTControlCharacters(lines[0] as string)).toContain('lost (err=closed)')
})

test('B5: what a server calls itself or says neither moves the cursor nor poses as another line', () => {
  const { log, lines } = logged(true)
  const evil = 'a\u001b[2J\u009b1m\r\n12:00:00 error forged\u202e'
  log.warn({ server: evil, tool: evil, list: [evil], err: new Error(evil) }, `lost ${evil}`)
  const [line = ''] = lines
  expect(lines).toHaveLength(1)
  expect(stripVTControlCharacters(line).trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  expect(line).toContain('tool=a\\u{1b}[2J\\u{9b}1m 12:00:00 error forged\\u{202e}')
})

test.each([true, false])('B6: concealed texts are in no line (pretty: %s)', (pretty) => {
  const { log, lines } = logged(pretty)
  log.conceal?.((line) => line.replaceAll('hunter22', '[redacted]'))
  log.warn({ server: 'files', err: new Error('refused hunter22') }, 'its answer to hunter22')
  expect(lines.join()).not.toContain('hunter22')
  expect(lines.join()).toContain('its answer to [redacted]')
})

test('the level decides what is written', () => {
  const { log, lines } = logged(true, 'error')
  log.info({}, 'nothing')
  expect(lines).toEqual([])
})

test('an error is logged with its cause, and a value that JSON does not support loses no message', () => {
  const { log, lines } = logged(false)
  log.error({ err: new TypeError('lost', { cause: new Error('closed') }) }, 'failed')
  log.error({ count: 1n }, 'counted')
  const [first, second] = lines.map((line) => JSON.parse(line))
  expect(first.err).toMatchObject({ type: 'TypeError', message: 'lost', cause: { message: 'closed' } })
  expect(first.err.stack).toContain('log.test')
  expect(second).toMatchObject({ level: 50, msg: 'counted' })
})

test('whether a level goes anywhere can be asked; nothing goes to a silent log', () => {
  const { log, lines } = logged(false, 'silent')
  log.error({}, 'nothing')
  expect(lines).toEqual([])
  expect([log.isLevelEnabled?.('error'), logged(false).log.isLevelEnabled?.('debug')]).toEqual([false, false])
  expect(logged(false, 'debug').log.isLevelEnabled?.('debug')).toBe(true)
})
