import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../../tests/fixtures/clock.ts'
import { logFolder, start } from '../../../audit/search/log.fixture.ts'
import { folder } from '../../folder.fixture.ts'
import { toolway } from '../../kit.fixture.ts'
import { widthOf } from '../../table.ts'
import { tailAudit } from './tail.ts'

const minute = 60_000

async function someLog() {
  const log = await logFolder()
  log.put({ operation: 'start', pid: 1, lanes: ['1'] }, start - 1)
  log.write({
    call: 'a',
    server: 'fs',
    tool: 'read_file',
    arguments: { path: '/x' },
    rule: 'agents.dev.allow.servers[0]',
  })
  const denied = { decision: 'DENY', reason: 'tool_not_allowed', rule: 'default', code: 'DENIED_BY_POLICY' } as const
  log.write({ call: 'b', lane: '2', at: start + minute, agent: 'ci', server: 'fs', tool: 'write_file', ...denied })
  log.write({ call: 'c', at: start + 2 * minute, server: 'db', tool: 'query', is_error: true, latency_ms: 120 })
  log.write({ call: 'd', at: start + 3 * minute, operation: 'list', open: true })
  return log
}

/** What a terminal would act on, line breaks aside. */
const harmful = /[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u

describe('F11, B11: toolway audit', () => {
  test('tail shows the last operations, one line each, all lanes in the order of time', async () => {
    await using log = await someLog()
    const { code, stdout, stderr } = await toolway(['audit', 'tail', '--path', log.folder])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.trimEnd().split('\n')).toEqual([
      '2026-03-01T12:00:00.005Z  dev  ALLOW  fs.read_file  5 ms  agents.dev.allow.servers[0]',
      '2026-03-01T12:01:00.005Z  ci  DENY  fs.write_file  5 ms  tool_not_allowed default',
      '2026-03-01T12:02:00.120Z  dev  ALLOW (tool error)  db.query  120 ms',
      '2026-03-01T12:03:00.000Z  dev  no end recorded  list',
    ])
    const two = await toolway(['audit', 'tail', '-n', '2', '--server', '*', '--path', log.folder])
    expect(two.stdout.match(/fs\.\w+|db\.\w+/g)).toEqual(['fs.write_file', 'db.query'])
    expect((await toolway(['audit', 'tail', '-n', '0', '--path', log.folder])).stdout).toBe('')
  })

  test('tail --json gives JSON lines, --raw the records as they are in the file', async () => {
    await using log = await someLog()
    const json = await toolway(['audit', 'tail', '--json', '--agent', 'dev', '--tool', 'read_*', '--path', log.folder])
    expect(
      json.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ call: 'a', decision: 'ALLOW', arguments: { path: '/x' }, lane: '1', ended: true }])
    const raw = await toolway(['audit', 'tail', '--raw', '-n', '1000', '--call', 'b', '--path', log.folder])
    expect(raw.stdout).toBe(readFileSync(log.path('2'), 'utf8'))
  })

  test('tail -n reads back as far as a filter needs', async () => {
    await using log = await logFolder()
    log.write({ call: 'rare', agent: 'rare' })
    log.atOnce(() => {
      for (let number = 0; number < 3000; number++) log.write({ call: `c${number}` })
    })
    const { stdout } = await toolway(['audit', 'tail', '--agent', 'rare', '--json', '--path', log.folder])
    expect(JSON.parse(stdout)).toMatchObject({ call: 'rare' })
  })

  test('tail --follow shows new operations, from new segments and lanes too, until interrupted', async () => {
    await using log = await logFolder()
    const clock = createManualClock()
    const stdout = new PassThrough()
    const stderr = new PassThrough()
    const interrupt = new AbortController()
    const streams = { stdin: Readable.from([]), stdout, stderr }
    const invocation = { command: 'toolway', program: [] }
    const shell = { ...streams, ...invocation, env: {}, cwd: log.folder, interrupted: interrupt.signal }
    const printed: string[] = []
    let heard = Promise.withResolvers<void>()
    stdout.on('data', (chunk: Buffer) => {
      printed.push(...chunk.toString().trimEnd().split('\n'))
      heard.resolve()
    })
    const ended = tailAudit(shell, { path: log.folder, lines: 20, follow: true, json: true }, clock)

    const next = async (write: () => void) => {
      heard = Promise.withResolvers()
      write()
      let done = false
      void heard.promise.then(() => {
        done = true
      })
      while (!done) await clock.pass(200)
      return printed.splice(0).map((line) => JSON.parse(line).call)
    }
    expect(await next(() => log.write({ call: 'a' }))).toEqual(['a'])
    const both = () => {
      log.write({ call: 'later', lane: '2', at: start + minute })
      log.rotate()
      log.write({ call: 'sooner', at: start })
    }
    expect(await next(both)).toEqual(['sooner', 'later'])
    log.write({ call: 'open', open: true })
    expect(await next(() => log.write({ call: 'b' }))).toEqual(['b'])
    interrupt.abort()
    expect(await ended).toBeUndefined()
    expect(clock.pending).toBe(0)
  })

  test('query finds operations, newest first, as a table or as JSON, page by page', async () => {
    await using log = await someLog()
    const query = (...words: string[]) => toolway(['audit', 'query', '--path', log.folder, ...words])
    const { code, stdout, stderr } = await query()
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^TIME +AGENT +DECISION +WHAT +TOOK +WHY +ARGUMENTS\n.*no end recorded/)
    expect(stdout).toMatch(/dev +ALLOW +fs\.read_file +5 ms +agents\.dev\.allow\.servers\[0\] +\{"path":"\/x"\}\n$/)
    const first = JSON.parse((await query('--json', '--limit', '3')).stdout)
    expect(first.rows.map(({ call }: { call: string }) => call)).toEqual(['d', 'c', 'b'])
    const rest = JSON.parse((await query('--json', '--limit', '3', '--before', first.next)).stdout)
    expect(rest).toMatchObject({ rows: [{ call: 'a' }], next: null })
    expect((await query('--limit', '1')).stderr).toContain('--before')
    expect(await query('--limit', '0')).toMatchObject({ code: 2, stderr: expect.stringContaining('from 1 to') })
    const found = async (...words: string[]) =>
      JSON.parse((await query('--json', ...words)).stdout).rows.map(({ call }: { call: string }) => call)
    expect(await found('--decision', 'deny', '--since', '2026-03-01')).toEqual(['b'])
    expect(await found('--text', 'PATH=/x')).toEqual(['a'])
    expect(await found('--errors')).toEqual(['c'])
    expect(await found('--since', '2026-03-01T12:02:00Z', '--operation', 'call_*')).toEqual(['c'])
    expect(await found('--since', '1m')).toEqual([])
    // Without a time zone, UTC applies, as in the log.
    for (const at of ['2026-03-01T12:02', '2026-03-01 12:02:00', '2026-03-01T14:02+02:00']) {
      expect(await found('--since', at, '--operation', 'call_*')).toEqual(['c'])
    }
    expect((await query('--raw', '--call', 'b')).stdout.trimEnd().split('\n')).toHaveLength(2)
    expect(await query('--agent', 'nobody')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('No matching records'),
    })
  })

  test('F11: who approved, what was asked for, and what was not recorded are in the table and in CSV', async () => {
    await using log = await logFolder()
    const subject = {
      phase: 'after',
      agent: 'dev',
      principal: 'key:dev',
      operation: 'call_tool',
      write: true,
      latency_ms: 1,
    }
    const denied = { ...subject, decision: 'DENY', reason: 'denied', is_error: true }
    log.put({ ...denied, call: 'a', approval: 'deny', approver: 'key:boss' }, start)
    log.put({ ...denied, call: 'b', detail: 'POST servers/fs/disable', suppressed: 41 }, start)
    log.put({ operation: 'gap', reason: 'unrecorded', unrecorded: { refused: 3, reads: 0, writes: 2 } }, start)
    log.put({ operation: 'gap', reason: 'records_missing', missing: { from: 5, to: 9 } }, start)
    const facts = ['key:boss', 'POST servers/fs/disable', '41', 'refused: 3, writes: 2', 'from: 5, to: 9']
    for (const command of ['query', 'export --format csv', 'export']) {
      const { stdout } = await toolway(['audit', ...command.split(' '), '--path', log.folder])
      expect(facts.filter((fact) => !stdout.includes(fact))).toEqual([])
    }
  })

  test('export streams everything, oldest first, as JSON lines or CSV', async () => {
    await using log = await someLog()
    await using place = await folder()
    const lines = (await toolway(['audit', 'export', '--path', log.folder])).stdout.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).call)).toEqual(['a', 'b', 'c', 'd'])
    const out = ['audit', 'export', '--format', 'csv', '--out', 'audit.csv', '--path', log.folder]
    const { code, stdout, stderr } = await toolway(out, place)
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toBe('Wrote audit.csv (4 operations).\n')
    const csv = readFileSync(join(place.cwd, 'audit.csv'), 'utf8').split('\r\n')
    expect(csv[0]).toMatch(/^time,agent,principal,/)
    expect(csv[1]).toContain('"{""path"":""/x""}"')
    expect(csv).toHaveLength(6)
    expect(statSync(join(place.cwd, 'audit.csv')).mode & 0o077).toBe(0)
    const nowhere = await toolway(['audit', 'export', '--out', 'no/such/file', '--path', log.folder], place)
    expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining('Cannot write no/such/file') })
    for (let count = 0; count < 1000; count++) log.write({ call: `e${count}` })
    const large = await toolway(['audit', 'export', '--out', 'no/such/file', '--path', log.folder], place)
    expect(large).toMatchObject({ code: 2, stderr: expect.stringContaining('Cannot write no/such/file: its folder') })
  })

  test('CSV cells are not formulas in a spreadsheet', async () => {
    await using log = await logFolder()
    for (const agent of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', ' =1', '＝1', 'a,b', 'say "hi"', 'x\ny', 'plain']) {
      log.write({ call: '1', agent })
    }
    const { stdout } = await toolway(['audit', 'export', '--format', 'csv', '--path', log.folder])
    const cells = [...stdout.matchAll(/(?:^|\n)2026[^,]*,("(?:[^"]|"")*"|[^,]*),/g)].map(([, cell]) => cell)
    expect(cells).toEqual([
      `"'=1+1"`,
      `"'+1"`,
      `"'-1"`,
      `"'@SUM(A1)"`,
      `"'\t=1"`,
      `"' =1"`,
      `"'＝1"`,
      '"a,b"',
      '"say ""hi"""',
      '"x\ny"',
      'plain',
    ])
  })

  test('F11: control characters, escapes and hidden ones in recorded values never reach the terminal, and JSON stays valid', async () => {
    await using log = await logFolder()
    const nasty = 'a\x1b[31mred\x1b]0;title\x07\r\nb\x9b2Jc\u202edesrever\u2066\u200b\u{e0041}\x7f\u061c\u2028'
    const fields = { agent: nasty, server: nasty, tool: nasty, reason: nasty, rule: nasty, operation: nasty }
    log.write({ call: nasty, ...fields, arguments: { [nasty]: nasty } })
    for (const words of [
      ['tail'],
      ['query'],
      ['tail', '--json'],
      ['query', '--json'],
      ['tail', '--raw'],
      ['query', '--raw'],
      ['export'],
      ['export', '--raw'],
    ]) {
      const { stdout } = await toolway(['audit', ...words, '--path', log.folder])
      expect(stdout, words.join(' ')).toContain('red')
      expect(stdout, words.join(' ')).not.toMatch(harmful)
    }
    const csv = (await toolway(['audit', 'export', '--format', 'csv', '--path', log.folder])).stdout
    expect(csv.replaceAll('\r\n', '')).not.toMatch(harmful)
    const args = /"(\{""(?:[^"]|"")*)"/.exec(csv)?.[1]?.replaceAll('""', '"') as string
    expect(JSON.parse(args)).toEqual({ [nasty]: nasty })
    const json = await toolway(['audit', 'tail', '--json', '--path', log.folder])
    expect(JSON.parse(json.stdout)).toMatchObject(fields)
    const wide = await toolway(['audit', 'query', '--path', log.folder], { columns: 70 })
    for (const line of wide.stdout
      .replace(/\x1b\[\d+m/g, '')
      .trimEnd()
      .split('\n')) {
      expect(line).not.toMatch(harmful)
      expect(widthOf(line)).toBeLessThanOrEqual(100)
    }
  })

  test('without a log there is only a note; the configured folder is the default', async () => {
    await using log = await someLog()
    await using place = await folder({ 'toolway.json': { audit: { path: './nothing' } } })
    await using other = await folder({ 'toolway.json': { audit: { path: log.folder } } })
    for (const command of ['tail', 'query', 'verify', 'export']) {
      const { code, stdout, stderr } = await toolway(['audit', command], place)
      expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
      expect(stderr).toMatch(/^There is no audit log in nothing yet/)
    }
    expect(JSON.parse((await toolway(['audit', 'query', '--json'], place)).stdout)).toEqual({ rows: [], next: null })
    expect((await toolway(['audit', 'tail', '-n', '1'], other)).stdout).toContain('no end recorded')
    expect((await toolway(['audit', 'export', '--call', 'a'], other)).stdout).toContain('"call":"a"')
  })

  test('invalid options are refused with a hint', async () => {
    await using log = await someLog()
    const refused = async (...words: string[]) => {
      const { code, stdout, stderr } = await toolway(['audit', ...words, '--path', log.folder])
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      return stderr
    }
    expect(await refused('query', '--since', 'yesterday')).toMatch(/yesterday.*--since/)
    expect(await refused('query', '--since', '2026-13-45')).toContain('2026-13-45')
    expect(await refused('tail', '--decision', 'maybe')).toContain('allow, deny, error, timeout')
    expect(await refused('tail', '-n', '-1')).toContain('1000000')
    expect(await refused('query', '--before', 'x')).toContain('Invalid cursor')
    expect(await refused('export', '--raw', '--format', 'csv')).toContain('--format jsonl')
    expect((await toolway(['audit', 'tail', '--path', log.path()])).stderr).toContain('is a file')
  })
})
